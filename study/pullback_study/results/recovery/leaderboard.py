"""Estimators over several test beds: values, and ranks with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pullback_study.results.cells import Cell, Interval
from pullback_study.results.tables import Column, Row, Table

_RESAMPLES = 2000


def leaderboard(title: str, beds: Mapping[str, Mapping[str, Cell]], name: str = "leaderboard") -> Table:
    """A row for each estimator, a column for each bed, the best mean rank first; those on fewer beds below the others.

    Args:
        title: of the table.
        beds: by the name of a bed, for each estimator its cell; higher is better, and a run that diverged counts as the worst.
        name: of the table's files.
    """
    rows = []
    for estimator, rank in mean_ranks(beds).items():
        cells = {bed: found.get(estimator, Cell()) for bed, found in beds.items()}
        count = sum(bool(cell.values) for cell in cells.values())
        texts = {"rank": f"{rank.mean:.1f} [{rank.low:.1f}, {rank.high:.1f}]", "beds": f"{count} of {len(beds)}"}
        rows.append((-count, rank.mean, Row(estimator, cells, texts, name=estimator)))
    rows.sort(key=lambda row: row[:2])
    columns = [Column("rank", "Mean rank"), Column("beds", "Beds"), *(Column(bed, bed) for bed in beds)]
    notes = ["Mean rank: over the beds, 1 the best, with its 95% interval (bootstrap over the seeds)."]
    return Table(title, columns, [row for *_, row in rows], notes, name, first="Estimator")


def mean_ranks(beds: Mapping[str, Mapping[str, Cell]]) -> dict[str, Interval]:
    """For each estimator its mean rank over the beds that it ran on.

    The rank on a bed is the place by the mean over the seeds, 1 the best. Its uncertainty comes from resampling the seeds of
    every cell (2000 times, fixed stream): the 2.5% and 97.5% points.
    """
    names = list(dict.fromkeys(name for bed in beds.values() for name, cell in bed.items() if cell.values))
    ranks = [_ranks(cells) for cells in beds.values()]
    found = {}
    for name in names:
        own = np.mean([each[name] for each in ranks if name in each], axis=0)
        low, high = np.quantile(own[1:], [0.025, 0.975])
        found[name] = Interval(float(own[0]), float(low), float(high))
    return found


def _ranks(cells: Mapping[str, Cell]) -> dict[str, np.ndarray]:
    """For each estimator its rank as measured, then in every resample."""
    stream = np.random.default_rng(0)
    means = {}
    for name, cell in cells.items():
        if cell.values:
            values = np.nan_to_num(np.asarray(cell.values, dtype=float), nan=-1e300)
            means[name] = np.append(values.mean(), stream.choice(values, (_RESAMPLES, len(values))).mean(1))
    return {name: 0.5 + sum(np.sign(other - own) / 2 + 0.5 for other in means.values()) for name, own in means.items()}
