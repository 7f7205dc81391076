"""The few statistics the tables and the verdicts need."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

# The 97.5% point of Student's t distribution, by degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


class Interval(NamedTuple):
    """A mean over seeds and its 95% confidence interval."""

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


def paired(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The interval of first - second, seed by seed."""
    return interval([a - b for a, b in zip(first, second, strict=True)])


def standard_error(values: Sequence[float]) -> float:
    """S / sqrt(n), with s the standard deviation (n - 1); NaN for one value.

    >>> standard_error([1.0, 2.0, 3.0, 4.0])
    0.645...
    """
    if len(values) < 2:
        return math.nan
    mean = statistics.fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
