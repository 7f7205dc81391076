"""Dynamic programmes as acyclic hypergraphs: the one form in which compiled backends see them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pullback.inference._numba.compile import kernel


@dataclass(frozen=True)
class Hypergraph:
    """The derivations of all structures of one size.

    The value of node v is the sum (or the maximum, in either case in logarithms) over its edges e of

        value(left[e]) + value(right[e]) + score(part[e]).

    Node 0 is the axiom: it has no edges and the value 0. Children come before their parents. Each structure has exactly
    one derivation from a goal node, which uses each part of the structure once. A node without edges, other than the
    axiom, has no derivation. For batches of several sizes, nodes are ordered so that those a smaller size needs come first.

    Args:
        first: `[nodes + 1]`, int32: the edges of node v are first[v], ..., first[v + 1] - 1.
        left: `[edges]`, int32.
        right: `[edges]`, int32, or `[0]` if no edge has a second child.
        part: `[edges]`, int32: the flat index of the part; K, the number of parts, for none (its score is 0).
        goals: the goal node of each size, indexed by the sizes; 0 for an empty structure, -1 if there is none.
        reach: `[nodes]`, int32: parts of the nodes up to v have indices below reach[v].
        widest: the largest number of edges of a node.
        height: `[nodes]`, int32: the most parts of a derivation of v.
        extra: `[edges]`, int32: height[v] - height[left] - height[right] - (1 if there is a part); `[0]` if it is 0 everywhere.
        counts: `[nodes]`: the logarithm of the number of derivations.
    """

    first: np.ndarray
    left: np.ndarray
    right: np.ndarray
    part: np.ndarray
    goals: np.ndarray
    reach: np.ndarray
    widest: int
    height: np.ndarray
    extra: np.ndarray
    counts: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.first, self.left, self.right, self.part

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.arrays, self.goals, self.reach, self.height, self.extra, self.counts))

    def with_goals(self, goals: np.ndarray) -> Hypergraph:
        """The same with other goals."""
        return dataclasses.replace(self, goals=goals)


Graph = Callable[..., Hypergraph]
"""From the shape of the parts and the options to the hypergraph; it should be cached."""


def hypergraph(
    parents: np.ndarray,
    left: np.ndarray,
    part: np.ndarray,
    *,
    goals: np.ndarray,
    nodes: int,
    parts: int,
    right: np.ndarray | None = None,
) -> Hypergraph:
    """The hypergraph of these edges, whose order within a node (which decides ties) is kept.

    Args:
        parents: `[edges]`: the node that an edge belongs to.
        left: `[edges]`.
        part: `[edges]`; `parts` for none.
        goals: the goal node of each size.
        nodes: how many there are, the axiom included.
        parts: how many there are, K.
        right: `[edges]`, where edges have two children.
    """
    order = np.argsort(parents, kind="stable")
    first = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(parents, minlength=nodes), out=first[1:])

    def sorted_(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x[order], np.int32)

    reach = np.zeros(nodes, np.int32)
    np.maximum.at(reach, parents, np.where(part < parts, part + 1, 0))
    reach = np.maximum.accumulate(reach)
    second = np.empty(0, np.int32) if right is None else sorted_(right)
    widest = int(np.diff(first).max(initial=0))
    arrays = first, sorted_(left), second, sorted_(part)
    height, extra, counts = np.zeros(nodes, np.int32), np.zeros(len(parents), np.int32), np.full(nodes, -np.inf)
    _measure(*arrays, parts, height, extra, counts)
    extra = extra if extra.any() else np.empty(0, np.int32)
    return Hypergraph(*arrays, goals.astype(np.int64), reach, widest, height, extra, counts)


@kernel
def _measure(first, left, right, part, parts, height, extra, counts):
    """Write `height`, `extra` and `counts` of a hypergraph."""
    counts[0] = 0.0
    for v in range(1, len(height)):
        most = -np.inf
        for e in range(first[v], first[v + 1]):
            h, x = height[left[e]] + (1 if part[e] < parts else 0), counts[left[e]]
            if len(right) > 0:
                h, x = h + height[right[e]], x + counts[right[e]]
            extra[e], height[v] = h, max(height[v], h)
            counts[v], most = x, max(most, x)
        total = 0.0
        for e in range(first[v], first[v + 1]):
            x = counts[left[e]] + (counts[right[e]] if len(right) > 0 else 0.0)
            total += math.exp(x - most)
            extra[e] = height[v] - extra[e]
        counts[v] = most + math.log(total) if first[v] < first[v + 1] else -np.inf
