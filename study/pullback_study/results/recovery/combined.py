"""Our combination against what it combines, paired over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback_study.results.cells import Cell, bootstrap
from pullback_study.results.recovery.beds import Bed
from pullback_study.results.tables import Column, Row, Table
from pullback_study.tasks.own import BLENDED

AGAINST = ("sampled-ste", "marginals", "perturbed-marginals")


def combined(beds: Sequence[Bed]) -> Table:
    """Differences in recovery, for each bed: the mean over the seeds that both have, with its 95% bootstrap interval."""
    rows = []
    for bed in beds:
        cells = bed.recovery
        if BLENDED.name in cells:
            own = dict(zip(cells[BLENDED.name].seeds, np.nan_to_num(cells[BLENDED.name].values), strict=True))
            texts = {other: _difference(own, cells[other]) for other in AGAINST if other in cells}
            rows.append(Row(bed.title, {}, {"seeds": str(len(own)), **texts}))
    columns = [Column(other, f"against {other}") for other in AGAINST]
    notes = ["Points of recovery, paired over the seeds. In brackets: 95% bootstrap intervals."]
    columns.append(Column("seeds", "Seeds"))
    return Table("Recovery of `blended`, less that of others", columns, rows, notes, "recovery-blended", first="Bed")


def _difference(own: Mapping[Any, float], cell: Cell) -> str:
    other = dict(zip(cell.seeds, np.nan_to_num(cell.values), strict=True))
    common = [own[seed] - other[seed] for seed in own if seed in other]
    if len(common) < 2:
        return f"{common[0]:+.1f} (1 seed)" if common else ""
    mean, low, high = bootstrap(common, np.mean)
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]"
