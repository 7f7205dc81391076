"""Segmentations as a hypergraph: node j stands for the segmentations of the first j positions.

value(j) = combine over widths w and labels c of value(j - w) + score(j - w, w - 1, c).
"""

from __future__ import annotations

import numpy as np

from pullback.inference.engine.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.engine.hypergraph.tables import remembered


@remembered
def graph(shape: tuple[int, ...]) -> Hypergraph:
    n, widths, labels = shape
    start, width, label = np.meshgrid(np.arange(n), np.arange(widths), np.arange(labels), indexing="ij")
    inside = start + width < n
    start, width, label = start[inside], width[inside], label[inside]
    part = (start * widths + width) * labels + label
    return hypergraph(start + width + 1, start, part, goals=np.arange(n + 1), nodes=n + 1, parts=n * widths * labels)
