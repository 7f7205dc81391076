"""Binary trees as a hypergraph: node (i, j) stands for the trees over the words i, ..., j.

    value(i, j) = score(i, j) + combine over k of value(i, k) + value(k + 1, j),        value(i, i) = score(i, i).

Nodes are ordered by j, then by falling i, so that a shorter sentence needs the first nodes only.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.hypergraph.tables import remembered


def _node(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return 1 + j * (j + 1) // 2 + (j - i)


@remembered
def graph(shape: tuple[int, ...]) -> Hypergraph:
    n = shape[0]
    words = np.arange(n)
    i, j = np.triu_indices(n, 1)
    splits = j - i
    i, j = np.repeat(i, splits), np.repeat(j, splits)
    k = i + np.arange(len(i)) - np.repeat(np.cumsum(splits) - splits, splits)
    return hypergraph(
        np.concatenate([_node(words, words), _node(i, j)]),
        np.concatenate([np.zeros_like(words), _node(i, k)]),
        np.concatenate([words * n + words, i * n + j]),
        goals=np.arange(n + 1) * np.arange(1, n + 2) // 2,
        nodes=1 + n * (n + 1) // 2,
        parts=n * n,
        right=np.concatenate([np.zeros_like(words), _node(k + 1, j)]),
    )
