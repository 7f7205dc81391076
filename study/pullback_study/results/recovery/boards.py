"""Estimators over several test beds: values, ranks with their uncertainty, and a line for each; the grid of planted trees."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from pullback_study.results.cells import Cell, Interval, bootstrap, number
from pullback_study.results.choice import Protocol, Runs
from pullback_study.results.recovery.beds import MEAN, RECOVERY, Bed, best_and_tied, differences, planted
from pullback_study.results.recovery.plans import BASES, ESTIMATORS, FULL, GRID, METHODS, chosen, timed
from pullback_study.results.tables import Column, Row, Table
from pullback_study.tasks.own import BLENDED

AGAINST = ("sampled-ste", "marginals", "perturbed-marginals")
"""What our combination is compared with."""
_RESAMPLES = 2000
_STEPS = (0.1, 0.2, 0.4, 0.7, 1.0)  # of all


def leaderboard(
    title: str, beds: Mapping[str, Mapping[str, Cell]], name: str = "leaderboard", unranked: Collection[str] = ()
) -> Table:
    """A row for each estimator, a column for each bed, the best mean rank first; those on fewer beds below the others.

    Beds have a cell for each estimator: higher is better, and a run that diverged counts as the worst. Cells of one seed are
    shown, and have no rank; so are the beds named in `unranked`.
    """
    rows = []
    ranked = {bed: cells for bed, cells in beds.items() if bed not in unranked}
    ranks = mean_ranks(ranked)
    for estimator in dict.fromkeys([*ranks, *(name for found in beds.values() for name in found)]):
        cells = {bed: found.get(estimator, Cell()) for bed, found in beds.items()}
        count = sum(cells[bed].count > 1 for bed in ranked)
        rank = ranks.get(estimator)
        texts = {"rank": rank.show(1) if rank else "", "beds": f"{count} of {len(ranked)}"}
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
    `measured` is, for each bed, the number as measured and in every resample of its seeds; NaN where there is none.
    """
    table = np.stack(measured)
    drawn = np.random.default_rng(1).integers(len(table), size=(_RESAMPLES, len(table)))
    of_seeds = table[drawn, np.arange(1, 1 + _RESAMPLES)[:, None]]
    there = ~np.isnan(of_seeds)
    means = np.nansum(of_seeds, 1)[there.any(1)] / there.sum(1)[there.any(1)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(np.nanmean(table[:, 0])), float(low), float(high))


def _ranks(cells: Mapping[str, Cell]) -> dict[str, np.ndarray]:
    """For each estimator its rank as measured, then in every resample."""
    stream = np.random.default_rng(0)
    means = {name: resampled(cell, -1e300, stream) for name, cell in cells.items() if cell.count > 1}
    return {name: 0.5 + sum(np.sign(other - own) / 2 + 0.5 for other in means.values()) for name, own in means.items()}


def summary(beds: Sequence[Bed], times: Mapping[str, str]) -> Table:
    """Ranks and means over the planted beds, each other bed, and milliseconds per step; the best mean rank first."""
    planted = [bed for bed in beds if bed.measure == RECOVERY[0] and bed.identified]
    others = [bed for bed in beds if bed not in planted]
    ranks = mean_ranks({bed.title: bed.recovery for bed in planted})
    scored = [bed for bed in beds if bed.measure and bed.identified]
    winners = [best_and_tied(bed.recovery) for bed in scored]
    names = list(dict.fromkeys([*ranks, *(name for bed in others for name in bed.rows)]))
    rows = []
    for name in names:
        own = [bed for bed in planted if name in bed.rows]
        texts = {
            "rank": ranks[name].show(1) if name in ranks else "",
            "planted": f"{len(own)} of {len(planted)}",
            "best": f"{sum(name in found for found in winners)} of {sum(name in bed.rows for bed in scored)}",
            "recovery": _mean([bed.recovery[name] for bed in own]).show(1) if own else "",
            "accuracy": _mean([bed.accuracy[name] for bed in own]).show(1) if own else "",
            "ms": times.get(name, ""),
        }
        cells = {bed.title: (bed.recovery or bed.accuracy).get(name, Cell()) for bed in others}
        rows.append((-len(own), ranks[name].mean if name in ranks else 0.0, Row(name, cells, texts, name=name)))
    rows.sort(key=lambda row: row[:2])
    marks = [" (accuracy)" * (not bed.measure) + " (not ranked)" * (not bed.identified) for bed in others]
    columns = [
        Column("rank", "Mean rank"), Column("planted", "Planted beds"), Column("best", "Best or tied"),
        Column("recovery", "Recovery"), Column("accuracy", "Accuracy"),
        *(Column(bed.title, bed.title + mark) for bed, mark in zip(others, marks, strict=True)),
        Column("ms", "ms per step"),
    ]  # fmt: skip
    notes = [
        "Mean rank, recovery and accuracy: means over the planted beds that are ranked (rule 8) and that the estimator ran on; "
        "brackets: 95% bootstrap intervals over beds and seeds. Best or tied: on how many of its ranked beds, by rule 3. Time: "
        "one step of 32 runs on planted trees that train as one batch, alone on the machine."
    ]
    return Table("One line per estimator", columns, [row for *_, row in rows], notes, "recovery-summary", first="Estimator")


def times(runs: Runs, protocol: Protocol = FULL) -> dict[str, str]:
    """Milliseconds per step of each estimator, where they were measured."""
    found = {}
    for name in METHODS:
        row = timed(runs, name, protocol)
        if row.done:
            where = "" if "NVIDIA" in str(row.done[0].result.get("device")) else " (CPU)"
            found[name] = f"{np.median([number(run, 'step_ms') for run in row.done]):.2g}{where}"
    return found


def _mean(cells: Sequence[Cell]) -> Interval:
    """Over beds of the means over seeds; a run that diverged counts as 0."""
    stream = np.random.default_rng(0)
    return over_beds([resampled(cell, 0.0, stream) for cell in cells])


def combined(beds: Sequence[Bed]) -> Table:
    """Differences in recovery, for each bed: the mean over the seeds that both have, with its 95% bootstrap interval."""
    rows = []
    for bed in beds:
        cells = bed.recovery
        if BLENDED.name in cells:
            own = cells[BLENDED.name]
            texts = {other: _difference(own, cells[other]) for other in AGAINST if other in cells}
            rows.append(Row(bed.title, {}, {"seeds": str(own.count), **texts}))
    columns = [Column(other, f"against {other}") for other in AGAINST]
    notes = ["Points of recovery, paired over the seeds. In brackets: 95% bootstrap intervals."]
    columns.append(Column("seeds", "Seeds"))
    return Table("Recovery of `blended`, less that of others", columns, rows, notes, "recovery-blended", first="Bed")


def _difference(own: Cell, other: Cell) -> str:
    common = differences(own, other)
    if len(common) < 2:
        return f"{common[0]:+.1f} (1 seed)" if common else ""
    mean, low, high = bootstrap(common, np.mean)
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]"


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
