"""Estimators over several test beds: values, and ranks with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pullback_study.results.cells import Cell
from pullback_study.results.tables import Column, Row, Table

_RESAMPLES = 2000


def leaderboard(title: str, beds: Mapping[str, Mapping[str, Cell]]) -> Table:
    """A row for each estimator, a column for each bed, the best mean rank first.

    The rank of an estimator on a bed is its place by the mean over the seeds, 1 the best. Its uncertainty comes from resampling
    the seeds of every cell (2000 times, fixed stream): the 2.5% and 97.5% points of the mean rank over the beds that it ran on.

    Args:
        title: of the table.
        beds: by the name of a bed, for each estimator its cell; higher is better, and a run that diverged counts as the worst.
    """
    names = list(dict.fromkeys(name for bed in beds.values() for name, cell in bed.items() if cell.values))
    ranks = {bed: _ranks(cells) for bed, cells in beds.items()}
    rows = []
    for name in names:
        own = np.mean([found[name] for found in ranks.values() if name in found], axis=0)
        low, high = np.quantile(own[1:], [0.025, 0.975])
        cells = {bed: found[name] for bed, found in beds.items() if name in found}
        rows.append((own[0], Row(name, cells, {"rank": f"{own[0]:.1f} [{low:.1f}, {high:.1f}]"}, name=name)))
    rows.sort(key=lambda row: row[0])
    columns = [Column("rank", "Mean rank"), *(Column(bed, bed) for bed in beds)]
    notes = ["Mean rank: over the beds, 1 the best, with its 95% interval (bootstrap over the seeds)."]
    return Table(title, columns, [row for _, row in rows], notes, "leaderboard", first="Estimator")


def _ranks(cells: Mapping[str, Cell]) -> dict[str, np.ndarray]:
    """For each estimator its rank as measured, then in every resample."""
    stream = np.random.default_rng(0)
    means = {}
    for name, cell in cells.items():
        if cell.values:
            values = np.nan_to_num(np.asarray(cell.values, dtype=float), nan=-1e300)
            means[name] = np.append(values.mean(), stream.choice(values, (_RESAMPLES, len(values))).mean(1))
    return {name: 1 + sum(np.sign(other - own) / 2 + 0.5 for key, other in means.items() if key != name)
            for name, own in means.items()}  # fmt: skip
