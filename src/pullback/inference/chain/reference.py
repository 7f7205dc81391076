"""Tag sequences in plain PyTorch: one recursion, the forward algorithm's, for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.chain.family import CHAIN
from pullback.inference.recursion import Combine, operations


def value(scores: Tensor, lengths: Tensor, combine: Combine) -> Tensor:
    """`alpha[b]`, the value of the sequences so far that end with tag b: combine over a of `alpha[a]` + score(i, a, b)."""
    batch, n = scores.shape[:2]
    if n == 0:
        return scores.new_zeros(batch)
    alpha = scores[:, 0, 0]
    for i in range(1, n):
        longer = combine(alpha[:, :, None] + scores[:, i], 1)
        alpha = torch.where((i < lengths)[:, None], longer, alpha)
    return torch.where(lengths > 0, combine(alpha, 1), 0.0)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, CHAIN.layout)
