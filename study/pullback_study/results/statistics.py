"""The few statistics that tables and verdicts need."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

# The 97.5% point of Student's t distribution, by degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_RESAMPLES = 2000


class Interval(NamedTuple):
    """A number estimated from seeds, and its 95% confidence interval."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """Mean +- t * s / sqrt(n), with s the standard deviation (n - 1) and t Student's 97.5% point.

    With one value nothing is known about the spread: the interval is the whole line.

    >>> interval([1.0, 2.0, 3.0, 4.0])
    Interval(mean=2.5, low=0.446..., high=4.553...)
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    freedom = len(values) - 1
    t = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom
    half = t * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def bootstrap(values: Sequence[float], middle: Callable[..., np.ndarray] = np.median) -> Interval:
    """The statistic of the values, and the 2.5% and 97.5% points of it over resamples of the seeds (2000, fixed stream).

    >>> bootstrap([1.0, 1.0, 1.0, 5.0]).low
    1.0
    """
    drawn = np.random.default_rng(0).choice(np.asarray(values, dtype=float), (_RESAMPLES, len(values)))
    low, high = np.quantile(middle(drawn, axis=1), [0.025, 0.975])
    whole = len(values) < 2
    return Interval(float(middle(values)), -math.inf if whole else float(low), math.inf if whole else float(high))


def share(values: Sequence[float], least: float) -> Interval:
    """The share of values of at least `least`, with Wilson's 95% interval.

    >>> share([100.0, 100.0, 60.0, 100.0], least=99.0)
    Interval(mean=0.75, low=0.300..., high=0.954...)
    """
    n, z = len(values), 1.96
    p = sum(value >= least for value in values) / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(p, max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n)))


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The points below which a quarter and three quarters of the values lie.

    >>> quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    (2.0, 4.0)
    """
    low, high = np.quantile(np.asarray(values, dtype=float), [0.25, 0.75])
    return float(low), float(high)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation (n - 1); NaN for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def standard_error(values: Sequence[float]) -> float:
    """S / sqrt(n), with s the standard deviation (n - 1); NaN for one value.

    >>> standard_error([1.0, 2.0, 3.0, 4.0])
    0.645...
    """
    return deviation(values) / math.sqrt(len(values))
