"""The leaderboard on one screen: a line for each estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pullback_study.results.cells import Cell, Interval, number
from pullback_study.results.choice import Runs
from pullback_study.results.protocol import Protocol
from pullback_study.results.recovery.beds import RECOVERY, Bed, best_and_tied
from pullback_study.results.recovery.leaderboard import mean_ranks, over_beds, rank_text, resampled
from pullback_study.results.recovery.plans import FULL, METHODS, timed
from pullback_study.results.tables import Column, Row, Table


def summary(beds: Sequence[Bed], times: Mapping[str, str]) -> Table:
    """Ranks and means over the planted beds, each other bed, and the time per step; the best mean rank first.

    Args:
        beds: all.
        times: milliseconds per step by estimator.
    """
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
            "rank": rank_text(ranks[name]) if name in ranks else "",
            "planted": f"{len(own)} of {len(planted)}",
            "best": f"{sum(name in found for found in winners)} of {sum(name in bed.rows for bed in scored)}",
            "recovery": rank_text(_mean([bed.recovery[name] for bed in own])) if own else "",
            "accuracy": rank_text(_mean([bed.accuracy[name] for bed in own])) if own else "",
            "ms": times.get(name, ""),
        }
        cells = {bed.title: (bed.recovery or bed.accuracy).get(name, Cell()) for bed in others}
        rows.append((-len(own), ranks[name].mean if name in ranks else 0.0, Row(name, cells, texts, name=name)))
    rows.sort(key=lambda row: row[:2])
    columns = [
        Column("rank", "Mean rank"), Column("planted", "Planted beds"), Column("best", "Best or tied"),
        Column("recovery", "Recovery"), Column("accuracy", "Accuracy"),
        *(Column(bed.title, bed.title + _marks(bed)) for bed in others),
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


def _marks(bed: Bed) -> str:
    return " (accuracy)" * (not bed.measure) + " (not ranked)" * (not bed.identified)
