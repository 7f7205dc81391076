"""Estimators over several test beds: values, and ranks with their uncertainty."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from pullback_study.results.cells import Cell, Interval
from pullback_study.results.tables import Column, Row, Table

_RESAMPLES = 2000


def leaderboard(
    title: str, beds: Mapping[str, Mapping[str, Cell]], name: str = "leaderboard", unranked: Collection[str] = ()
) -> Table:
    """A row for each estimator, a column for each bed, the best mean rank first; those on fewer beds below the others.

    Cells of one seed are shown, and have no rank.

    Args:
        title: of the table.
        beds: by the name of a bed, for each estimator its cell; higher is better, and a run that diverged counts as the worst.
        name: of the table's files.
        unranked: the names of beds that are shown and do not count for ranks.
    """
    rows = []
    ranked = {bed: cells for bed, cells in beds.items() if bed not in unranked}
    ranks = mean_ranks(ranked)
    for estimator in dict.fromkeys([*ranks, *(name for found in beds.values() for name in found)]):
        cells = {bed: found.get(estimator, Cell()) for bed, found in beds.items()}
        count = sum(cells[bed].count > 1 for bed in ranked)
        rank = ranks.get(estimator)
        texts = {"rank": rank_text(rank) if rank else "", "beds": f"{count} of {len(ranked)}"}
        rows.append((-count, rank.mean if rank else 0.0, Row(estimator, cells, texts, name=estimator)))
    rows.sort(key=lambda row: row[:2])
    columns = [Column("rank", "Mean rank"), Column("beds", "Beds")]
    columns += [Column(bed, f"{bed} (not ranked)" if bed in unranked else bed) for bed in beds]
    notes = ["Mean rank: over the beds, 1 the best, with its 95% interval (bootstrap over beds, and over the seeds of each)."]
    if unranked:
        notes.append("Not ranked: the labels of these beds do not identify the structure (rule 8).")
    return Table(title, columns, [row for *_, row in rows], notes, name, first="Estimator")


def mean_ranks(beds: Mapping[str, Mapping[str, Cell]]) -> dict[str, Interval]:
    """For each estimator its mean rank over the beds on which it ran with two seeds or more.

    The rank on a bed is the place by the mean over the seeds, 1 the best. Its uncertainty is that of `over_beds`.
    """
    ranks = [_ranks(cells) for cells in beds.values()]
    absent = np.full(1 + _RESAMPLES, np.nan)
    return {name: over_beds([each.get(name, absent) for each in ranks]) for name in dict.fromkeys(n for r in ranks for n in r)}


def resampled(cell: Cell, missing: float, stream: np.random.Generator) -> np.ndarray:
    """The mean over the seeds, then in every resample of the seeds; `missing` stands for a run that diverged."""
    values = np.nan_to_num(np.asarray(cell.values, dtype=float), nan=missing)
    return np.append(values.mean(), stream.choice(values, (_RESAMPLES, len(values))).mean(1))


def over_beds(measured: Sequence[np.ndarray]) -> Interval:
    """The mean over beds, and its 95% interval by a hierarchical bootstrap (2000 resamples, fixed stream).

    A resample draws as many beds as there are, with replacement, and for each its seeds. The next bed is another one, like the
    next seed: intervals of the seeds alone say how sure the ranks of these beds are, not those of others.

    Args:
        measured: for each bed the number as measured and in every resample of its seeds; NaN where there is none.
    """
    table = np.stack(measured)
    drawn = np.random.default_rng(1).integers(len(table), size=(_RESAMPLES, len(table)))
    of_seeds = table[drawn, np.arange(1, 1 + _RESAMPLES)[:, None]]
    there = ~np.isnan(of_seeds)
    means = np.nansum(of_seeds, 1)[there.any(1)] / there.sum(1)[there.any(1)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(np.nanmean(table[:, 0])), float(low), float(high))


def rank_text(found: Interval, digits: int = 1) -> str:
    return "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(*found, d=digits)


def _ranks(cells: Mapping[str, Cell]) -> dict[str, np.ndarray]:
    """For each estimator its rank as measured, then in every resample."""
    stream = np.random.default_rng(0)
    means = {name: resampled(cell, -1e300, stream) for name, cell in cells.items() if cell.count > 1}
    return {name: 0.5 + sum(np.sign(other - own) / 2 + 0.5 for other in means.values()) for name, own in means.items()}
