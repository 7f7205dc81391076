"""A cell of a results table: one number per seed, and everything that is made from them."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pullback_study.results.statistics import Interval, bootstrap, deviation, interval, quartiles, standard_error


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
        if self.reference is None or self.count < 2 or self.diverged:
            return False
        return abs(self.difference) > self.spread + self.reference.spread

    def show(self) -> str:
        """`value±spread`, without ± for one seed, and how many runs diverged."""
        if not self.values:
            return "not run"
        if not self.finite:
            return "diverged"
        return _with_spread(self.value, self.spread, self.digits) + (
            f" ({self.diverged} of {self.count} diverged)" if self.diverged else ""
        )

    def show_reference(self) -> str:
        return _with_spread(*self.reference[:2], self.digits) if self.reference else ""

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"count": self.count, "diverged": self.diverged, "statistic": self.summary.words}
        if self.finite:
            found |= {"value": self.value, "spread": self.spread, "interval": list(self.interval[1:])}
            found |= {"quartiles": list(quartiles(self.finite))}
        if self.reference:
            found |= {"reference": self.reference._asdict(), "differs": self.differs}
        return found | {"values": list(self.values), "runs": list(self.runs), "seeds": list(self.seeds)}


def _with_spread(value: float, spread: float, digits: int) -> str:
    return f"{value:.{digits}f}" + ("" if math.isnan(spread) else f"±{spread:.{digits}f}")
