"""Segmentations with scores for pairs of labels as a hypergraph, with three kinds of nodes.

Of each number of positions j there are

    value(j, c) = combine over widths w of into(j - w, c) + score(j - w, w - 1, c)
    total(j)    = combine over labels c of value(j, c)
    into(j, c)  = combine over labels a of value(j, a) + transition(a, c)

and into(0, c) is the axiom.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.engine.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.semi_markov.family import positions, rows_of_transitions


@remembered
def graph(shape: tuple[int, ...]) -> Hypergraph:
    n, (_, widths, labels) = positions(shape), shape
    parts, own = int(np.prod(shape)), rows_of_transitions(widths, labels) * widths * labels
    block = 2 * labels + 1

    def node(kind: int, j: np.ndarray, label: np.ndarray | int = 0) -> np.ndarray:
        """Of a number of positions: `kind` is 0 for a value, C for the total, C + 1 for what leads on."""
        return 1 + (j - 1) * block + kind + label

    start, width, label = np.meshgrid(np.arange(n), np.arange(widths), np.arange(labels), indexing="ij")
    inside = start + width < n
    start, width, label = start[inside], width[inside], label[inside]
    segments = (
        node(0, start + width + 1, label),
        np.where(start > 0, node(labels + 1, start, label), 0),
        own + (start * widths + width) * labels + label,
    )
    j, last = (x.ravel() for x in np.meshgrid(np.arange(1, n + 1), np.arange(labels), indexing="ij"))
    totals = node(labels, j), node(0, j, last), np.full_like(j, parts)
    j, before, behind = (x.ravel() for x in np.meshgrid(np.arange(1, n), np.arange(labels), np.arange(labels), indexing="ij"))
    transitions = node(labels + 1, j, behind), node(0, j, before), before * labels + behind
    parents, left, part = (np.concatenate(each) for each in zip(segments, totals, transitions, strict=True))
    goals = node(labels, np.arange(n + 1))
    goals[0] = 0
    nodes = 1 + n * block - labels if n else 1  # nothing leads on from the last position
    return hypergraph(parents, left, part, goals=goals, nodes=nodes, parts=parts)
