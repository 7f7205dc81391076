"""Agreement and shape of trees as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pullback.viz import Table
from pullback_study.trees.agreement import Score
from pullback_study.trees.shape import Shape
from pullback_study.trees.treebank import BASELINES, GOLD, Agreement


def agreement_table(rows: Sequence[Agreement], title: str, notes: Sequence[str] = ()) -> Table:
    """Attachment scores with their intervals; the gold trees have a row in the other tables alone."""
    table = Table(title, ["trees", "attachment", "no punctuation", "undirected"])
    for row in rows:
        if row.name != GOLD:
            scores = (row.all_words, row.without_punctuation, row.undirected)
            table.rows.append([row.name, *map(_with_interval, scores)])
    table.notes = [*notes, "percent of words, with 95% intervals over sentences (bootstrap)"]
    return table


def likeness_table(rows: Sequence[Agreement]) -> Table:
    """The agreement of each system with the baselines."""
    names = list(BASELINES)
    table = Table("Words with the same head as in ...", ["trees", *names])
    for row in rows:
        table.rows.append([row.name, *("" if name == row.name else _with_interval(row.alike[name]) for name in names)])
    left, right, random = BASELINES
    table.notes = [
        f"percent of words; {left}: the head is the next word, {right}: the one before; {random}: one tree per sentence, "
        "uniform over projective trees with any number of roots"
    ]
    return table


def shape_table(shapes: Sequence[tuple[str, Shape]], title: str = "Shape of the trees") -> Table:
    """Depth, arcs and roots of each system's trees."""
    table = Table(title, ["trees", "depth", "arc length", "roots", "left arcs", "projective"])
    for name, each in shapes:
        table.rows.append([
            name, f"{each.depth:.2f}", _or_dash(each.arc_length, "{:.2f}"), f"{each.roots:.2f}",
            _or_dash(100 * each.left, "{:.1f}%"), f"{100 * each.projective:.1f}%",
        ])  # fmt: skip
    table.notes = [
        "depth: arcs on the longest path from the artificial root (a flat tree has 2), mean over sentences; "
        "left arcs: modifier left of its head"
    ]
    return table


def _with_interval(score: Score) -> str:
    return _or_dash(score.value, "{:.1f}" + f" [{score.low:.1f}, {score.high:.1f}]")


def _or_dash(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)
