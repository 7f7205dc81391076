"""Planted trees: every estimator over the grid of settings, and against steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from pullback_study.results.cells import Cell
from pullback_study.results.choice import Runs
from pullback_study.results.protocol import Protocol
from pullback_study.results.recovery.beds import MEAN, planted
from pullback_study.results.recovery.leaderboard import leaderboard
from pullback_study.results.recovery.plans import BASES, ESTIMATORS, FULL, GRID, chosen
from pullback_study.results.tables import Table

_STEPS = (0.1, 0.2, 0.4, 0.7, 1.0)  # of all


def grid_tables(runs: Runs, protocol: Protocol = FULL) -> Iterator[Table]:
    """Recovery and accuracy of every estimator in every setting of the grid, and at the base setting against steps."""
    beds = [planted(runs, setting, protocol) for setting in GRID]
    for measure in ("recovery", "accuracy"):
        cells = {bed.title: getattr(bed, measure) for bed in beds if bed.rows}
        yield _named(leaderboard(f"Planted trees: {measure} over the grid", cells), f"planted-grid-{measure}", protocol)
    for measure in ("recovery", "accuracy"):
        by_step: dict[str, dict[str, Cell]] = {f"step {share * protocol['steps']:g}": {} for share in _STEPS}
        for name in ESTIMATORS:
            row = chosen(runs, name, BASES["tree"], protocol)
            for share, cells in zip(_STEPS, by_step.values(), strict=True):
                values = [run.get(share * protocol["steps"], math.nan) for run in row.histories(measure)]
                if values:
                    cells[name] = Cell(tuple(values), summary=MEAN, digits=1)
        title = f"{BASES['tree'].title}: validation {measure} against steps"
        table = _named(leaderboard(title, by_step), f"planted-steps-{measure}", protocol)
        yield dataclasses.replace(table, columns=[column for column in table.columns if column.name != "beds"],
                                  notes=["Mean rank: over these steps, 1 the best, with its 95% interval."])  # fmt: skip


def _named(table: Table, name: str, protocol: Protocol) -> Table:
    return dataclasses.replace(table, name=name, warning=protocol.warning)
