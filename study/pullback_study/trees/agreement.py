"""Latent trees compared with a treebank and with uninformed trees: attachment scores with intervals, as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pullback.viz import Table
from pullback_study.corpora import Parse
from pullback_study.trees.shape import Shape, baseline_trees, shape

Trees = Sequence[Sequence[int]]
GOLD = "gold"
PUNCTUATION = "PUNCT"  # the universal part of speech


class Score(NamedTuple):
    """A share in percent, and its 95% interval over sentences."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """One system's trees against the gold ones, and against those of each baseline."""

    name: str
    scores: dict[str, Score]  # attachment, the same without punctuation, and with arcs in either direction
    alike: dict[str, Score]  # the share of words with the same head as in the trees of each baseline
    shape: Shape  # of the system's own trees


def attachment(
    trees: Trees, gold: Trees, *, counted: Sequence[Sequence[bool]] | None = None, undirected: bool = False, seed: int = 0
) -> Score:
    """The share of words with the right head: the (unlabelled) attachment score, over all words of all sentences.

    Its interval is the 2.5% and 97.5% quantiles over 1000 resamples of whole sentences.

    Args:
        trees: the heads of each sentence, 0 the root.
        gold: the heads to agree with.
        counted: for each word, whether it counts; all do by default. Punctuation, for example, may be left out as a
            modifier; as a head it is still right or wrong.
        undirected: an arc between two words counts in either direction.
        seed: of the resampling.

    >>> attachment([[2, 0], [0, 1, 2]], [[2, 0], [2, 0, 2]]).value
    60.0
    >>> attachment([[2, 0], [0, 1, 2]], [[2, 0], [2, 0, 2]], undirected=True).value
    80.0
    """
    if len(trees) != len(gold):
        raise ValueError(f"there are {len(trees)} trees and {len(gold)} gold ones; each sentence needs both")
    right, total = np.zeros(len(gold)), np.zeros(len(gold))
    for i, (heads, golden) in enumerate(zip(trees, gold, strict=True)):
        if len(heads) != len(golden):
            raise ValueError(f"sentence {i + 1} has {len(heads)} heads and {len(golden)} gold ones")
        for word, head in enumerate(heads, 1):
            if counted is None or counted[i][word - 1]:
                total[i] += 1
                right[i] += head == golden[word - 1] or bool(undirected and head and golden[head - 1] == word)
    return ratio(right, total, seed=seed)


def ratio(parts: np.ndarray, wholes: np.ndarray, *, seed: int = 0, resamples: int = 1000) -> Score:
    """100 * sum(parts) / sum(wholes) with a percentile bootstrap over the entries; NaN if there is nothing to count."""
    if wholes.sum() == 0:
        return Score(math.nan, math.nan, math.nan)
    generator = np.random.default_rng(seed)
    values = np.empty(resamples)
    for k in range(resamples):
        drawn = generator.integers(len(wholes), size=len(wholes))
        whole = wholes[drawn].sum()
        values[k] = parts[drawn].sum() / whole if whole else np.nan
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Score(*(100 * float(value) for value in (parts.sum() / wholes.sum(), low, high)))


def compare(parses: Sequence[Parse], systems: Mapping[str, Trees], *, seed: int = 0) -> list[Agreement]:
    """The systems (for each name the heads of every sentence), then the three baselines and the gold trees themselves.

    The seed is that of the random trees and of the intervals.
    """
    if not parses:
        raise ValueError("there are no sentences to compare trees on")
    gold = [parse.heads for parse in parses]
    baselines = baseline_trees([len(heads) for heads in gold], seed)
    rows: dict[str, Trees] = {**systems, **baselines, GOLD: gold}
    counted = [[tag != PUNCTUATION for tag in parse.tags] for parse in parses]
    return [
        Agreement(
            name,
            {
                "attachment": attachment(trees, gold, seed=seed),
                "no punctuation": attachment(trees, gold, counted=counted, seed=seed),
                "undirected": attachment(trees, gold, undirected=True, seed=seed),
            },
            {other: attachment(trees, plain, seed=seed) for other, plain in baselines.items()},
            shape(trees),
        )
        for name, trees in rows.items()
    ]


def tables(rows: Sequence[Agreement], title: str, notes: Sequence[str] = ()) -> list[Table]:
    """Attachment scores with their intervals, the agreement with the baselines, and the shape of the trees."""
    agreement = Table(title, ["trees", *rows[0].scores])
    agreement.rows = [[row.name, *map(_with_interval, row.scores.values())] for row in rows if row.name != GOLD]
    agreement.notes = [*notes, "percent of words, with 95% intervals over sentences (bootstrap)"]
    likeness = Table("Words with the same head as in ...", ["trees", *rows[0].alike])
    likeness.rows = [
        [row.name, *("" if name == row.name else _with_interval(score) for name, score in row.alike.items())] for row in rows
    ]
    likeness.notes = [
        "percent of words; left-branching: the head is the next word, right-branching: the one before; random: one tree per "
        "sentence, uniform over projective trees with any number of roots"
    ]
    return [agreement, likeness, shape_table([(row.name, row.shape) for row in rows])]


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
