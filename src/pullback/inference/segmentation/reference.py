"""Segmentations in plain PyTorch: one recursion for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.engine.hypergraph.recursions import graph_of
from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.segmentation.family import SEGMENTATION


def value(scores: Tensor, lengths: Tensor, combine: Combine) -> Tensor:
    """`ends[j]`, the value of the first j positions: combine over the last segment of `ends[start]` + its score."""
    n, widths = scores.shape[1:3]
    ends = [scores.new_zeros(scores.shape[0])]
    for j in range(1, n + 1):
        starts = range(max(j - widths, 0), j)
        terms = [ends[i][:, None] + scores[:, i, j - 1 - i] for i in starts]
        ends.append(combine(torch.cat(terms, 1) if terms else scores.new_zeros(scores.shape[0], 0), 1))
    return torch.stack(ends, 1).gather(1, lengths[:, None]).squeeze(1)


graph = graph_of(value, SEGMENTATION.layout)
argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, SEGMENTATION.layout)
