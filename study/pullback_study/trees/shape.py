"""The shape of dependency trees: depth, lengths and directions of arcs, roots, projectivity.

A tree is its heads: 0 is the artificial root, 1 the first word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The shape of many trees together.

    Args:
        sentences: how many trees; those without words do not count.
        words: how many words in all.
        depth: arcs on the longest path from the artificial root, mean over the trees.
        arc_length: words from head to modifier, mean over all arcs between words; NaN if there are none.
        roots: words attached to the root, mean over the trees.
        left: of the arcs between words, the share whose modifier stands left of its head; NaN if there are none.
        projective: the share of trees without crossing arcs, those from the root included.
    """

    sentences: int
    words: int
    depth: float
    arc_length: float
    roots: float
    left: float
    projective: float


def shape(trees: Iterable[Sequence[int]]) -> Shape:
    """The shape of some trees.

    >>> shape([[2, 0, 2], [0, 1]])
    Shape(sentences=2, words=5, depth=2.0, arc_length=1.0, roots=1.0, left=0.333..., projective=1.0)
    """
    kept = [list(heads) for heads in trees if len(heads)]
    if not kept:
        raise ValueError("there are no trees to measure; pass at least one with words")
    arcs = [(head, word) for heads in kept for word, head in enumerate(heads, 1) if head]
    nan = float("nan")
    return Shape(
        sentences=len(kept),
        words=sum(map(len, kept)),
        depth=sum(map(depth, kept)) / len(kept),
        arc_length=sum(abs(head - word) for head, word in arcs) / len(arcs) if arcs else nan,
        roots=sum(heads.count(0) for heads in kept) / len(kept),
        left=sum(word < head for head, word in arcs) / len(arcs) if arcs else nan,
        projective=sum(map(is_projective, kept)) / len(kept),
    )


def depth(heads: Sequence[int]) -> int:
    """The arcs on the longest path from the artificial root: 1 if all words attach to it, 2 for other flat trees.

    >>> depth([2, 0, 2]), depth([0, 0]), depth([0, 1, 2]), depth([])
    (2, 1, 3, 0)
    """
    known = {0: 0}
    for word in range(1, len(heads) + 1):
        path = []
        while word not in known:
            path.append(word)
            word = heads[word - 1]
            if len(path) > len(heads):
                raise ValueError(f"the heads {list(heads)} are not a tree: some words do not reach the root")
        for below in reversed(path):
            known[below] = known[heads[below - 1]] + 1
    return max(known.values())


def is_projective(heads: Sequence[int]) -> bool:
    """Whether no two arcs cross, with the artificial root to the left of the first word.

    >>> is_projective([2, 0, 2]), is_projective([3, 4, 0, 3]), is_projective([0, 0, 1])
    (True, False, False)
    """
    arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)
