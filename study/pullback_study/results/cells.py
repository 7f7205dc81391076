"""A cell of a results table: one number per seed, and everything that is made from them; the few statistics it needs."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pullback_study.runs.store import Stored

# The 97.5% point of Student's t distribution, by degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_RESAMPLES = 2000


class Interval(NamedTuple):
    """A number estimated from seeds, and its 95% confidence interval."""

    mean: float
    low: float
    high: float

    def show(self, digits: int = 2) -> str:
        """`mean [low, high]`; without an interval where nothing is known about it."""
        mean, low, high = (f"{value:.{digits}f}" for value in self)
        return mean if math.isinf(self.low) else f"{mean} [{low}, {high}]"


def interval(values: Sequence[float]) -> Interval:
    """Mean +- t * s / sqrt(n), with s the standard deviation (n - 1) and t Student's 97.5% point.

    With one value nothing is known about the spread: the interval is the whole line.

    >>> interval([1.0, 2.0, 3.0, 4.0])
    Interval(mean=2.5, low=0.446..., high=4.553...)
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = student(len(values) - 1) * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def student(freedom: int) -> float:
    """The 97.5% point of Student's t distribution, which an interval of a mean needs."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom


def bootstrap(values: Sequence[float], middle: Callable[..., np.ndarray] = np.median) -> Interval:
    """The statistic of the values, and the 2.5% and 97.5% points of it over resamples of the seeds (2000, fixed stream)."""
    drawn = np.random.default_rng(0).choice(np.asarray(values, dtype=float), (_RESAMPLES, len(values)))
    low, high = np.quantile(middle(drawn, axis=1), [0.025, 0.975])
    whole = len(values) < 2
    return Interval(float(middle(values)), -math.inf if whole else float(low), math.inf if whole else float(high))


def share(values: Sequence[float], least: float) -> Interval:
    """The share of values of at least `least`, with Wilson's 95% interval."""
    n, z = len(values), 1.96
    p = sum(value >= least for value in values) / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(p, max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n)))


def quartiles(values: Sequence[float]) -> list[float]:
    """The points below which a quarter and three quarters of the values lie."""
    return np.quantile(values, [0.25, 0.75]).tolist()


def deviation(values: Sequence[float]) -> float:
    """The standard deviation (n - 1); NaN for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def standard_error(values: Sequence[float]) -> float:
    """The standard deviation over the root of n; NaN for one value."""
    return deviation(values) / math.sqrt(len(values))


class Reference(NamedTuple):
    """A published number and its spread: a standard error or a standard deviation, as its table says."""

    value: float
    spread: float = 0.0
    source: str = "paper"


@dataclass(frozen=True)
class Summary:
    """How the numbers of the seeds become one, its spread, and a 95% interval of it."""

    words: str  # what value ± spread is, for captions
    middle: Callable[[Sequence[float]], float]
    spread: Callable[[Sequence[float]], float]  # NaN for one value
    interval: Callable[[Sequence[float]], Interval]


MEAN = Summary("mean ± standard deviation", statistics.fmean, deviation, interval)
MEAN_ERROR = Summary("mean ± standard error", statistics.fmean, standard_error, interval)
MEDIAN = Summary("median ± standard error", statistics.median, standard_error, bootstrap)


@dataclass(frozen=True)
class Cell:
    """The same measure for every seed of one setting.

    >>> cell = Cell((80.0, 81.0, 82.0), reference=Reference(84.0, 0.5))
    >>> cell.show(), cell.differs, cell.count
    ('81.00±1.00', True, 3)
    """

    values: tuple[float, ...] = ()  # one number per seed; NaN for a run that diverged. None at all: the runs are not done
    runs: tuple[str, ...] = ()  # the ids of the runs, in the same order
    seeds: tuple[int | None, ...] = ()  # their seeds, in the same order
    summary: Summary = MEAN
    reference: Reference | None = None
    digits: int = 2  # after the point
    judged: bool = True  # against the published number; False for reduced runs, which cannot be

    @classmethod
    def of(
        cls, runs: Sequence[Stored], measure: str, summary: Summary = MEAN, reference: Reference | None = None, digits: int = 2
    ) -> Cell:
        """A measure of the results of some runs; NaN for a run that diverged."""
        values, ids, seeds = ([number(run, measure) for run in runs], [run.id for run in runs], [run.seed for run in runs])
        return cls(tuple(values), tuple(ids), tuple(seeds), summary, reference, digits)

    @functools.cached_property
    def finite(self) -> list[float]:
        """The numbers of the runs that did not diverge."""
        return [value for value in self.values if math.isfinite(value)]

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def diverged(self) -> int:
        return len(self.values) - len(self.finite)

    @functools.cached_property
    def value(self) -> float:
        return self.summary.middle(self.finite) if self.finite else math.nan

    @functools.cached_property
    def spread(self) -> float:
        return self.summary.spread(self.finite) if self.finite else math.nan

    @functools.cached_property
    def interval(self) -> Interval:
        return self.summary.interval(self.finite) if self.finite else Interval(math.nan, math.nan, math.nan)

    @property
    def difference(self) -> float:
        """Ours less the published number; NaN where there is none."""
        return math.nan if self.reference is None else self.value - self.reference.value

    @property
    def differs(self) -> bool:
        """Whether ours and the published number differ by more than both spreads together; never for one seed."""
        if self.reference is None or not self.judged or self.count < 2 or self.diverged:
            return False
        return abs(self.difference) > self.spread + self.reference.spread

    def show(self) -> str:
        """`value±spread`, without ± for one seed, and how many runs diverged."""
        if not self.values:
            return "not run"
        if not self.finite:
            return "diverged"
        lost = f" ({self.diverged} of {self.count} diverged)" * bool(self.diverged)
        return _with_spread(self.value, self.spread, self.digits) + lost

    def show_reference(self) -> str:
        return _with_spread(*self.reference[:2], self.digits) if self.reference else ""

    @property
    def behind(self) -> str:
        """The runs behind it, one per line."""
        each = zip(self.seeds, self.values, self.runs, strict=True)
        lines = [f"seed {seed}: {value:.{self.digits}f}, run {run[:8]}" for seed, value, run in each]
        return "\n".join(lines + [f"difference from the paper: {self.difference:+.{self.digits}f}"] * bool(self.reference))

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"count": self.count, "diverged": self.diverged, "statistic": self.summary.words}
        if self.finite:
            found |= {"value": self.value, "spread": self.spread, "interval": list(self.interval[1:])}
            found |= {"quartiles": quartiles(self.finite)}
        if self.reference:
            found |= {"reference": self.reference._asdict(), "differs": self.differs}
        return found | {"values": list(self.values), "runs": list(self.runs), "seeds": list(self.seeds)}


def _with_spread(value: float, spread: float, digits: int) -> str:
    return f"{value:.{digits}f}" + ("" if math.isnan(spread) else f"±{spread:.{digits}f}")


def number(run: Stored, measure: str) -> float:
    """A number of a run's result; NaN where there is none."""
    return float(run.metrics.get(measure, math.nan))


def comparable(value: float) -> float:
    """The number to find the best by: NaN, of a run that diverged, is below all others."""
    return -math.inf if math.isnan(value) else value


def history(rows: Sequence[Mapping[str, float]], measure: str, unit: str = "step") -> dict[float, float]:
    """A measure by the step of its evaluation."""
    return {row[unit]: row[measure] for row in rows if unit in row and measure in row}
