"""Tag sequences as a hypergraph.

Node (i, b) stands for the sequences that end with tag b at position i, node (i, C) for all that end at position i:

    value(i, b) = combine over a of value(i - 1, a) + score(i, a, b)        value(i, C) = combine over b of value(i, b)
"""

from __future__ import annotations

import numpy as np

from pullback.inference.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.hypergraph.tables import remembered


@remembered
def graph(shape: tuple[int, ...]) -> Hypergraph:
    n, tags, _ = shape
    i, b, a = np.meshgrid(np.arange(n), np.arange(tags), np.arange(tags), indexing="ij")
    exists = (i > 0) | (a == 0)
    i, b, a = i[exists], b[exists], a[exists]
    before = np.where(i > 0, 1 + (i - 1) * (tags + 1) + a, 0)
    end, last = np.meshgrid(np.arange(n), np.arange(tags), indexing="ij")
    ends = 1 + end.ravel() * (tags + 1) + tags
    return hypergraph(
        np.concatenate([1 + i * (tags + 1) + b, ends]),
        np.concatenate([before, 1 + (end * (tags + 1) + last).ravel()]),
        np.concatenate([(i * tags + a) * tags + b, np.full(len(ends), n * tags * tags)]),
        goals=np.arange(n + 1) * (tags + 1),
        nodes=1 + n * (tags + 1),
        parts=n * tags * tags,
    )
