"""The shape of dependency trees (depth, arcs, roots, projectivity), and trees that depend only on the length of a sentence.

A tree is its heads: 0 is the artificial root, 1 the first word.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

BASELINES = ("left-branching", "right-branching", "random")
_BATCH = 256


@dataclass(frozen=True)
class Shape:
    """The shape of many trees together; NaN for what there is none of."""

    sentences: int  # those without words do not count
    words: int
    depth: float  # arcs on the longest path from the artificial root, mean over the trees
    arc_length: float  # words from head to modifier, mean over all arcs between words
    roots: float  # words attached to the root, mean over the trees
    left: float  # of the arcs between words, the share whose modifier stands left of its head
    projective: float  # the share of trees without crossing arcs, those from the root included


def shape(trees: Iterable[Sequence[int]]) -> Shape:
    """The shape of some trees.

    >>> shape([[2, 0, 2], [0, 1]])
    Shape(sentences=2, words=5, depth=2.0, arc_length=1.0, roots=1.0, left=0.333..., projective=1.0)
    """
    kept = [list(heads) for heads in trees if len(heads)]
    if not kept:
        raise ValueError("there are no trees to measure; pass at least one with words")
    arcs = [(head, word) for heads in kept for word, head in enumerate(heads, 1) if head]
    return Shape(
        sentences=len(kept),
        words=sum(map(len, kept)),
        depth=fmean(map(depth, kept)),
        arc_length=fmean(abs(head - word) for head, word in arcs) if arcs else math.nan,
        roots=fmean(heads.count(0) for heads in kept),
        left=fmean(word < head for head, word in arcs) if arcs else math.nan,
        projective=fmean(map(is_projective, kept)),
    )


def depth(heads: Sequence[int]) -> int:
    """The arcs on the longest path from the artificial root: 1 if all words attach to it, 2 for other flat trees.

    >>> depth([2, 0, 2]), depth([0, 0]), depth([0, 1, 2]), depth([])
    (2, 1, 3, 0)
    """
    children = defaultdict(list)
    for word, head in enumerate(heads, 1):
        children[head].append(word)
    level, reached, below = 0, 0, [0]
    while below := [child for word in below for child in children[word]]:
        level, reached = level + 1, reached + len(below)
    if reached < len(heads):
        raise ValueError(f"the heads {list(heads)} are not a tree: some words do not reach the root")
    return level


def is_projective(heads: Sequence[int]) -> bool:
    """Whether no two arcs cross, with the artificial root to the left of the first word.

    >>> is_projective([2, 0, 2]), is_projective([3, 4, 0, 3]), is_projective([0, 0, 1])
    (True, False, False)
    """
    arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def baseline_trees(lengths: Sequence[int], seed: int) -> dict[str, list[list[int]]]:
    """By the names of `BASELINES`, trees for sentences of these lengths.

    Left-branching: the head is the next word; right-branching: the one before; random: one tree per sentence, uniform over
    the projective trees with any number of roots (samples of zero scores), which depends on the seed and on all lengths.

    >>> list(baseline_trees([3, 0, 1], seed=0).values())[:2]
    [[[2, 3, 0], [], [0]], [[0, 1, 2], [], [0]]]
    """
    import torch

    from pullback.structures import DependencyTree

    generator = torch.Generator().manual_seed(seed)
    drawn: list[list[int]] = [[] for _ in lengths]
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    for start in range(0, len(order), _BATCH):  # of similar lengths, so that little is padding
        batch = order[start : start + _BATCH]
        sizes = torch.tensor([lengths[i] for i in batch])
        n = int(sizes.max())
        tree = DependencyTree(lengths=sizes)
        for i, heads in zip(batch, tree.heads(tree.sample(torch.zeros(len(batch), n, n), generator)).tolist(), strict=True):
            drawn[i] = heads[: lengths[i]]
    left = [[*range(2, n + 1), 0][:n] if n else [] for n in lengths]
    return dict(zip(BASELINES, (left, [list(range(n)) for n in lengths], drawn), strict=True))
