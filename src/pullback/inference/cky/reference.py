"""Binary trees in plain PyTorch: one recursion, CKY's, for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.recursion import Combine, operations


def value(scores: Tensor, lengths: Tensor, combine: Combine) -> Tensor:
    """`spans[w]` `[B, n - w]`, the values of the spans i..i + w: score + combine over the splits of left + right."""
    batch, n, _ = scores.shape
    if n == 0:
        return scores.new_zeros(batch)
    spans = [scores.diagonal(0, 1, 2)]
    for w in range(1, n):
        splits = [spans[k][:, : n - w] + spans[w - 1 - k][:, k + 1 : k + 1 + n - w] for k in range(w)]
        spans.append(scores.diagonal(w, 1, 2) + combine(torch.stack(splits, 1), 1))
    whole = torch.stack([span[:, 0] for span in spans], 1).gather(1, (lengths.clamp_min(1) - 1)[:, None]).squeeze(1)
    return torch.where(lengths > 0, whole, 0.0)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, BINARY_TREE.layout)
