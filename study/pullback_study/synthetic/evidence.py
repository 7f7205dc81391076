"""What the verdicts on the synthetic claims rest on: runs, margins, and the comparisons the rules are made of."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pullback_study.statistics import Interval, interval, paired
from pullback_study.synthetic.methods import METHODS, ROWS
from pullback_study.synthetic.plans import FULL, Chosen, Scope, choose, steps_cell, table_cell
from pullback_study.verdicts import Finding, Verdict, above, within

FAR = 10.0
"""A difference that counts as far below, or as failing."""
NEAR = {"test_accuracy": 3.0, "test_v_measure": 5.0}
"""A shortfall that counts as indistinguishable, for each measure."""
RECOVERED = 90.0
"""The V-measure from which clusters count as recovered."""

MEASURES = {"test_accuracy": "accuracy", "test_v_measure": "V-measure"}


@dataclass(frozen=True)
class Evidence:
    """The runs that the verdicts rest on.

    Args:
        root: the folder of the runs.
        scope: seeds, steps and precision.
    """

    root: Path
    scope: Scope = FULL

    def row(self, estimator: str, clusters: int) -> Chosen | None:
        return choose(table_cell(estimator, clusters, grid=True, scope=self.scope), self.root)

    def steps(self, estimator: str) -> dict[int, Chosen] | None:
        """For each number of inner steps, the runs with the best step size."""
        found = {k: choose(steps_cell(estimator, k, scope=self.scope), self.root) for k in self.scope.inner_steps}
        return None if None in found.values() else {k: chosen for k, chosen in found.items() if chosen}

    def best_row(self, clusters: int, measure: str) -> Chosen | None:
        """The latent variable row with the highest mean of the measure, picked on the validation set."""
        rows = [self.row(name, clusters) for name in ROWS if METHODS[name].kind != "Baselines"]
        found = [row for row in rows if row]
        if len(found) < len(rows):
            return None
        return max(found, key=lambda row: statistics.fmean(row.values(measure.replace("test", "validation"))))


def exceeds(statement: str, high: Chosen | None, low: Chosen | None, measure: str, threshold: float) -> Finding:
    return compare(statement, high, low, lambda chosen: chosen.values(measure), threshold)


def compare(
    statement: str,
    high: Chosen | None,
    low: Chosen | None,
    values: Callable[[Chosen], list[float]],
    threshold: float = 0.0,
) -> Finding:
    """Is high - low above the threshold?"""
    if high is None or low is None:
        return _missing(statement)
    found = paired(values(high), values(low))
    return Finding(statement, f"{_show(found)}; more than {threshold:g}?", above(found, threshold), found, threshold)


def near_best(evidence: Evidence, name: str, clusters: int, measure: str) -> Finding:
    statement = f"best row - {METHODS[name].row}, {MEASURES[measure]}, {clusters} clusters"
    best, row = evidence.best_row(clusters, measure), evidence.row(name, clusters)
    if best is None or row is None:
        return _missing(statement)
    found = paired(best.values(measure), row.values(measure))
    margin, which = NEAR[measure], METHODS[best.config.estimator].row
    words = f"{_show(found)}; within {margin:g}?"
    return Finding(f"{statement} (best: {which})", words, within(found, margin), found, margin)


def recovers(statement: str, row: Chosen | None) -> Finding:
    if row is None:
        return _missing(statement)
    found = interval(row.values("test_v_measure"))
    words = f"V-measure {_show(found)}; more than {RECOVERED:g}?"
    return Finding(statement, words, above(found, RECOVERED), found, RECOVERED)


def calls_are(statement: str, rows: dict[int, Chosen] | None, expected: list[int]) -> Finding:
    if rows is None:
        return _missing(statement)
    counted = [int(min(row.values("decoder_calls"))) for row in rows.values()]
    if 0 in counted:  # a step calls the decoder, so these were not counted
        return _missing(statement)
    return Finding(statement, f"{counted}", Verdict.HOLDS if counted == expected else Verdict.FAILS)


def best_steps(curve: dict[int, Chosen] | None) -> Chosen | None:
    if curve is None:
        return None
    return max(curve.values(), key=lambda chosen: statistics.fmean(chosen.values("validation_accuracy")))


def early_accuracy(chosen: Chosen) -> list[float]:
    """The mean validation accuracy over the first tenth of training, for each seed."""
    last = chosen.config.steps / 10
    return [statistics.fmean(row["accuracy"] for row in run.metrics if row["step"] <= last) for run in chosen.runs]


def late_deviation(chosen: Chosen) -> list[float]:
    """The standard deviation of the validation accuracy over the last quarter of training, for each seed."""
    first = 0.75 * chosen.config.steps
    return [statistics.stdev(row["accuracy"] for row in run.metrics if row["step"] > first) for run in chosen.runs]


def minus(first: list[float], second: list[float]) -> list[float]:
    return [a - b for a, b in zip(first, second, strict=True)]


def opposite(found: Verdict) -> Verdict:
    return {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS, Verdict.OPEN: Verdict.OPEN}[found]


def _missing(statement: str) -> Finding:
    return Finding(statement, "runs missing", Verdict.OPEN)


def _show(found: Interval) -> str:
    spread = "" if math.isinf(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.mean:.2f}{spread}"
