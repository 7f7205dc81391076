"""Projective dependency trees on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.eisner import generated
from pullback.inference.engine.rules.cpu import Kernels
from pullback.inference.trees.family import TREES


def _shifted(scores: Tensor, lengths: Tensor) -> Tensor:
    """Scores less each column's largest, zeros in the padding."""
    if scores.numel() == 0:
        return scores.contiguous()
    mask = TREES.layout.mask(scores, (lengths,))
    real = torch.where(mask, scores, 0.0)
    top = torch.where(mask.any(2, keepdim=True), real, -torch.inf).amax(1, keepdim=True)
    return (real - torch.where(torch.isfinite(top), top, 0.0)).contiguous()


_kernels = Kernels(generated, longest=56, shifted=_shifted)
argmax, log_partition, marginals = _kernels.argmax, _kernels.log_partition, _kernels.marginals
marginals_and_product, marginals_vjp, sample = _kernels.marginals_and_product, _kernels.marginals_vjp, _kernels.sample
entropy, entropy_gradient = _kernels.entropy, _kernels.entropy_gradient
