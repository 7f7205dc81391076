"""Tag sequences with transitions apart, in plain PyTorch: one recursion, the forward algorithm's, for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.factored.family import FACTORED, positions


def value(scores: Tensor, lengths: Tensor, combine: Combine) -> Tensor:
    """`alpha[b]`, the value of the sequences so far that end with tag b: combine over a of `alpha[a]` + transition(a, b)."""
    n = positions(scores.shape)
    start, end, transitions = scores[:, n], scores[:, n + 1], scores[:, n + 2 :]
    ends, alpha = [scores.new_zeros(len(scores))], start
    for i in range(n):
        alpha = scores[:, i] + (combine(alpha[:, :, None] + transitions, 1) if i > 0 else start)
        ends.append(combine(alpha + end, 1))
    return torch.stack(ends, 1).gather(1, lengths[:, None]).squeeze(1)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, FACTORED.layout)
