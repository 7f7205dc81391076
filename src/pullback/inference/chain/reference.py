"""Tag sequences in plain PyTorch: one recursion, the forward algorithm's, for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.chain.family import CHAIN
from pullback.inference.engine.recursion import Combine, operations


def value(scores: Tensor, lengths: Tensor, combine: Combine) -> Tensor:
    """`alpha[b]`, the value of the sequences so far that end with tag b: combine over a of `alpha[a]` + score(i, a, b)."""
    batch, n = scores.shape[:2]
    ends, alpha = [scores.new_zeros(batch)], scores.new_zeros(batch, 0)
    for i in range(n):
        alpha = combine(alpha[:, :, None] + scores[:, i], 1) if i > 0 else scores[:, 0, 0]
        ends.append(combine(alpha, 1))
    return torch.stack(ends, 1).gather(1, lengths[:, None]).squeeze(1)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, CHAIN.layout)
