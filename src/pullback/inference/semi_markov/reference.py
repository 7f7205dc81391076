"""Segmentations with scores for pairs of labels, in plain PyTorch: one recursion for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.engine.hypergraph.recursions import graph_of
from pullback.inference.engine.recursion import Combine
from pullback.inference.semi_markov.family import LAYOUT, positions, rows_of_transitions


def value(scores: Tensor, lengths: Tensor, combine: Combine) -> Tensor:
    """`into[j][c]`, the value of the first j positions with the transition to a segment of label c behind them."""
    n, (batch, _, widths, labels) = positions(scores.shape), scores.shape
    rows = rows_of_transitions(widths, labels)
    transitions = scores[:, :rows].flatten(1)[:, : labels * labels]
    into, ends = [scores.new_zeros(batch, labels)], [scores.new_zeros(batch)]
    for j in range(1, n + 1):
        terms = [into[i] + scores[:, rows + i, j - 1 - i] for i in range(max(j - widths, 0), j)]
        last = combine(torch.stack(terms, 1) if terms else scores.new_zeros(batch, 0, labels), 1)
        ends.append(combine(last, 1))
        if 0 < widths and j < n:
            into.append(combine(last[:, :, None] + transitions.reshape(batch, labels, labels), 1))
    return torch.stack(ends, 1).gather(1, lengths[:, None]).squeeze(1)


graph = graph_of(value, LAYOUT)
