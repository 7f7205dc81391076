"""Monotone paths as a hypergraph: node (i, j) stands for the paths from (0, 0) to that cell.

    value(i, j) = score(i, j) + combine over the cells (i', j') from which a move leads to (i, j) of value(i', j').

Ties: the diagonal move first, then down, then right. Nodes are ordered so that cells of smaller alignments come first.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.hypergraph.tables import remembered

MOVES = {"any": ((1, 1), (1, 0), (0, 1)), "forward": ((1, 1), (0, 1))}
"""Steps down and to the right, in the order that decides ties."""


def _numbers(n: int, m: int) -> np.ndarray:
    """The node of each cell, `[n * m]`: ordered by the smallest alignment of these proportions that has the cell."""
    i, j = np.arange(n)[:, None], np.arange(m)[None, :]
    shell = np.maximum((i + 1) * m, (j + 1) * n)
    order = np.lexsort(((i + j).ravel(), shell.ravel()))
    node = np.empty(n * m, np.int64)
    node[order] = np.arange(1, n * m + 1)
    return node


@remembered
def graph(shape: tuple[int, ...], moves: str) -> Hypergraph:
    n, m = shape
    cells = np.arange(n * m)
    node = _numbers(n, m)
    goals = np.full((n + 1, m + 1), -1)
    goals[0, 0], goals[1:, 1:] = 0, node.reshape(n, m)
    parents, left, part = [node[:1]], [np.zeros(min(n * m, 1), np.int64)], [cells[:1]]
    for down, right in MOVES[moves]:
        to = cells[(cells // max(m, 1) >= down) & (cells % max(m, 1) >= right)]
        parents.append(node[to])
        left.append(node[to - down * m - right])
        part.append(to)
    edges = (np.concatenate(x) for x in (parents, left, part))
    return hypergraph(*edges, goals=goals, nodes=n * m + 1, parts=n * m)
