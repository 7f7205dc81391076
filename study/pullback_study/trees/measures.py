"""Dependency trees compared with a treebank and with uninformed trees, and their shape: scores with intervals, as tables.

A tree is its heads: 0 is the artificial root, 1 the first word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch

from pullback.structures import DependencyTree
from pullback.viz import Table
from pullback_study.corpora import Parse
from pullback_study.tasks.text.models import depths

Trees = Sequence[Sequence[int]]
GOLD = "gold"
PUNCTUATION = "PUNCT"  # the universal part of speech
_BATCH = 256


class Shape(NamedTuple):
    """The shape of many trees together; NaN for what there is none of."""

    depth: float  # arcs on the longest path from the artificial root, mean over the trees
    arc_length: float  # words from head to modifier, mean over all arcs between words
    roots: float  # words attached to the root, mean over the trees
    left: float  # of the arcs between words, the share whose modifier stands left of its head
    projective: float  # the share of trees without crossing arcs, those from the root included


def shape(trees: Iterable[Sequence[int]]) -> Shape:
    """The shape of some trees; those without words do not count."""
    kept = [list(heads) for heads in trees if len(heads)]
    if not kept:
        raise ValueError("there are no trees to measure; pass at least one with words")
    arcs = [(head, word) for heads in kept for word, head in enumerate(heads, 1) if head]
    length = fmean(abs(head - word) for head, word in arcs) if arcs else math.nan
    left = fmean(word < head for head, word in arcs) if arcs else math.nan
    roots, projective = fmean(heads.count(0) for heads in kept), fmean(map(is_projective, kept))
    return Shape(fmean(map(depth, kept)), length, roots, left, projective)


def depth(heads: Sequence[int]) -> int:
    """The arcs on the longest path from the artificial root: 1 if all words attach to it, 2 for other flat trees.

    >>> depth([2, 0, 2]), depth([0, 0]), depth([0, 1, 2]), depth([])
    (2, 1, 3, 0)
    """
    return int(depths(torch.tensor([*heads], dtype=torch.int64)))


def is_projective(heads: Sequence[int]) -> bool:
    """Whether no two arcs cross, with the artificial root to the left of the first word."""
    arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def baseline_trees(lengths: Sequence[int], seed: int) -> dict[str, list[list[int]]]:
    """By name, trees for sentences of these lengths.

    Left-branching: the head is the next word; right-branching: the one before; random: one tree per sentence, uniform over
    the projective trees with any number of roots (samples of zero scores), which depends on the seed and on all lengths.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn: list[list[int]] = [[] for _ in lengths]
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    for start in range(0, len(order), _BATCH):  # of similar lengths, so that little is padding
        batch = order[start : start + _BATCH]
        sizes = torch.tensor([lengths[i] for i in batch])
        n, tree = int(sizes.max()), DependencyTree(lengths=sizes)
        for i, heads in zip(batch, tree.heads(tree.sample(torch.zeros(len(batch), n, n), generator)).tolist(), strict=True):
            drawn[i] = heads[: lengths[i]]
    left = [[*range(2, n + 1), 0][:n] for n in lengths]
    return {"left-branching": left, "right-branching": [list(range(n)) for n in lengths], "random": drawn}


class Score(NamedTuple):
    """A share in percent, and its 95% interval over sentences."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return _or_dash(self.value, "{:.1f}" + f" [{self.low:.1f}, {self.high:.1f}]")


class Agreement(NamedTuple):
    """One system's trees against the gold ones, and against those of each baseline."""

    name: str
    scores: dict[str, Score]  # attachment, the same without punctuation, and with arcs in either direction
    alike: dict[str, Score]  # the share of words with the same head as in the trees of each baseline
    shape: Shape  # of the system's own trees


def attachment(
    trees: Trees, gold: Trees, *, counted: Sequence[Sequence[bool]] | None = None, undirected: bool = False, seed: int = 0
) -> Score:
    """The share of words with the right head: the (unlabelled) attachment score, over all words of all sentences.

    Its interval is the 2.5% and 97.5% quantiles over 1000 resamples of whole sentences. `counted` says of each word whether it
    counts as a modifier; as a head it is still right or wrong. `undirected`: arcs between words count in either direction.

    >>> attachment([[2, 0], [0, 1, 2]], [[2, 0], [2, 0, 2]]).value
    60.0
    >>> attachment([[2, 0], [0, 1, 2]], [[2, 0], [2, 0, 2]], undirected=True).value
    80.0
    """
    if [len(heads) for heads in trees] != [len(heads) for heads in gold]:
        raise ValueError(f"{len(trees)} trees and {len(gold)} gold ones: each sentence needs both, of the same length")
    right, total = np.zeros(len(gold)), np.zeros(len(gold))
    for i, (heads, golden) in enumerate(zip(trees, gold, strict=True)):
        for word, head in enumerate(heads, 1):
            if counted is None or counted[i][word - 1]:
                total[i] += 1
                right[i] += head == golden[word - 1] or bool(undirected and head and golden[head - 1] == word)
    return ratio(right, total, seed=seed)


def ratio(parts: np.ndarray, wholes: np.ndarray, *, seed: int = 0, resamples: int = 1000) -> Score:
    """100 * sum(parts) / sum(wholes) with a percentile bootstrap over the entries; NaN if there is nothing to count."""
    if wholes.sum() == 0:
        return Score(math.nan, math.nan, math.nan)
    generator, n = np.random.default_rng(seed), len(wholes)
    draws = (generator.integers(n, size=n) for _ in range(resamples))
    values = [parts[drawn].sum() / (wholes[drawn].sum() or np.nan) for drawn in draws]
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Score(*(100 * float(value) for value in (parts.sum() / wholes.sum(), low, high)))


def compare(parses: Sequence[Parse], systems: Mapping[str, Trees], *, seed: int = 0) -> list[Agreement]:
    """The systems (for each name the heads of every sentence), then the three baselines and the gold trees themselves.

    The seed is that of the random trees and of the intervals.
    """
    gold = [parse.heads for parse in parses]
    baselines = baseline_trees([len(heads) for heads in gold], seed)
    counted = [[tag != PUNCTUATION for tag in parse.tags] for parse in parses]

    def agreement(name: str, trees: Trees) -> Agreement:
        scores = {
            "attachment": attachment(trees, gold, seed=seed),
            "no punctuation": attachment(trees, gold, counted=counted, seed=seed),
            "undirected": attachment(trees, gold, undirected=True, seed=seed),
        }
        alike = {other: attachment(trees, plain, seed=seed) for other, plain in baselines.items()}
        return Agreement(name, scores, alike, shape(trees))

    return [agreement(name, trees) for name, trees in {**systems, **baselines, GOLD: gold}.items()]


def tables(rows: Sequence[Agreement], title: str, notes: Sequence[str] = ()) -> list[Table]:
    """Attachment scores with their intervals, the agreement with the baselines, and the shape of the trees."""
    agreement = Table(title, ["trees", *rows[0].scores])
    agreement.rows = [[row.name, *map(str, row.scores.values())] for row in rows if row.name != GOLD]
    agreement.notes = [*notes, "percent of words, with 95% intervals over sentences (bootstrap)"]
    likeness = Table("Words with the same head as in ...", ["trees", *rows[0].alike])
    likeness.rows = [[row.name, *("" if name == row.name else str(row.alike[name]) for name in row.alike)] for row in rows]
    likeness.notes = [
        "percent of words; left-branching: the head is the next word, right-branching: the one before; random: one tree per "
        "sentence, uniform over projective trees with any number of roots"
    ]
    return [agreement, likeness, shape_table({row.name: row.shape for row in rows})]


def shape_table(shapes: Mapping[str, Shape]) -> Table:
    """Depth, arcs and roots of each system's trees."""
    table = Table("Shape of the trees", ["trees", "depth", "arc length", "roots", "left arcs", "projective"])
    for name, each in shapes.items():
        arcs, left = _or_dash(each.arc_length, "{:.2f}"), _or_dash(100 * each.left, "{:.1f}%")
        table.rows.append([name, f"{each.depth:.2f}", arcs, f"{each.roots:.2f}", left, f"{100 * each.projective:.1f}%"])
    table.notes = [
        "depth: arcs on the longest path from the artificial root (a flat tree has 2), mean over sentences; "
        "left arcs: modifier left of its head"
    ]
    return table


def _or_dash(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)
