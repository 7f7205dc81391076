"""What the verdicts on the text claims rest on: runs, margins, and the comparisons the rules are made of."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pullback_study.statistics import Interval, interval, paired
from pullback_study.text.methods import METHODS, ROWS
from pullback_study.text.plans import FULL, INNER_STEPS, Chosen, Scope, choose, table_cell, with_steps
from pullback_study.verdicts import Finding, Verdict, above, within

NEAR = 1.5
"""A difference of accuracies, in points, that counts as small."""
FLAT = 3.0
"""A mean depth below which trees count as flat: one word at the root and all others below it make 2."""
DEEP = (4.0, 6.0)
"""What counts as a mean depth around 5."""

RELAXED = tuple(name for name in ROWS if METHODS[name].kind == "Relaxed")
ARGMAX = tuple(name for name in ROWS if METHODS[name].kind == "Argmax")

Values = Sequence[float] | None
"""A number for each seed; None while runs are missing."""


@dataclass(frozen=True)
class Evidence:
    """The runs that the verdicts rest on.

    Args:
        root: the folder of the runs.
        scopes: seeds, epochs and data of each task.
        searched: the tasks whose rows enter with the setting that the search chose; the others, with the paper's.
    """

    root: Path
    scopes: dict[str, Scope] = field(default_factory=lambda: dict(FULL))
    searched: tuple[str, ...] = ("sst",)

    def row(self, task: str, estimator: str) -> Chosen | None:
        """A row whose runs are all done."""
        chosen = choose(table_cell(estimator, self.scopes[task], search=task in self.searched), self.root)
        return chosen if chosen and chosen.complete else None

    def values(self, task: str, estimator: str, measure: str) -> Values:
        row = self.row(task, estimator)
        return row.values(measure) if row else None

    def best_row(self, task: str) -> Chosen | None:
        """The row with the highest mean validation accuracy, the baseline included."""
        found = [row for name in ROWS if (row := self.row(task, name))]
        if len(found) < len(ROWS):
            return None
        return max(found, key=lambda row: statistics.fmean(row.values("validation_accuracy")))

    def steps(self, estimator: str) -> dict[int, Chosen]:
        """The row on SST by its number of inner steps, where all runs are done."""
        row = self.row("sst", estimator)
        found = {k: with_steps(row, k, self.root) for k in INNER_STEPS} if row else {}
        return {k: chosen for k, chosen in found.items() if chosen.complete}


def compare(statement: str, high: Values, low: Values, threshold: float = 0.0) -> Finding:
    """Is high - low above the threshold, seed by seed?"""
    if high is None or low is None:
        return missing(statement)
    found = paired(high, low)
    return Finding(statement, f"{show(found)}; more than {threshold:g}?", above(found, threshold), found, threshold)


def near_best(evidence: Evidence, task: str, name: str) -> Finding:
    """Is a row's shortfall in test accuracy from the best row small?"""
    statement = f"best row - {METHODS[name].row}, test accuracy, {task.upper()}"
    best, row = evidence.best_row(task), evidence.row(task, name)
    if best is None or row is None:
        return missing(statement)
    found = paired(best.values("test_accuracy"), row.values("test_accuracy"))
    words = f"{show(found)}; within {NEAR:g}?"
    which = METHODS[best.config.estimator].row
    return Finding(f"{statement} (best: {which})", words, within(found, NEAR), found, NEAR)


def unchanged(statement: str, first: Values, second: Values) -> Finding:
    """Is the difference small in both directions?

    Holds if the whole interval is within NEAR of zero, fails if it lies beyond on one side; otherwise not decided.
    """
    if first is None or second is None:
        return missing(statement)
    found = paired(first, second)
    inside = -NEAR < found.low and found.high < NEAR
    beyond = found.low > NEAR or found.high < -NEAR
    verdict = Verdict.HOLDS if inside else Verdict.FAILS if beyond else Verdict.OPEN
    return Finding(statement, f"{show(found)}; between -{NEAR:g} and {NEAR:g}?", verdict, found, NEAR)


def below(statement: str, values: Values, threshold: float) -> Finding:
    """Is a mean over the seeds below the threshold?"""
    if values is None:
        return missing(statement)
    found = interval(values)
    verdict = Verdict.HOLDS if found.high < threshold else Verdict.FAILS if found.low > threshold else Verdict.OPEN
    return Finding(statement, f"{show(found)}; less than {threshold:g}?", verdict, found, threshold)


def mean_of(rows: Sequence[Chosen | None], values: Callable[[Chosen], list[float]]) -> Values:
    """The mean over several rows, for each seed; None if one is missing."""
    if None in rows:
        return None
    return [statistics.fmean(seed) for seed in zip(*(values(row) for row in rows if row), strict=True)]


def late_deviation(chosen: Chosen) -> list[float]:
    """The standard deviation of the validation accuracy over the second half of the epochs, for each seed."""
    histories = [[row["accuracy"] for row in run.metrics] for run in chosen.runs]
    return [statistics.stdev(history[len(history) // 2 :]) for history in histories]


def missing(statement: str) -> Finding:
    return Finding(statement, "runs missing", Verdict.OPEN)


def show(found: Interval) -> str:
    spread = "" if math.isinf(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.mean:.2f}{spread}"
