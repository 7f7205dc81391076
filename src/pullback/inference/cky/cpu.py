"""Binary trees on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.cky import generated
from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.engine.rules.cpu import Kernels


def _shifted(scores: Tensor, lengths: Tensor) -> Tensor:
    """Scores less the largest of each example, zeros where there is no part: all trees of an example have as many spans."""
    if scores.numel() == 0:
        return scores.contiguous()
    mask = BINARY_TREE.layout.mask(scores, (lengths,))
    real = torch.where(mask, scores, 0.0)
    top = torch.where(mask, scores, -torch.inf).amax((1, 2), keepdim=True)
    return torch.where(mask, real - torch.where(torch.isfinite(top), top, 0.0), 0.0).contiguous()


_kernels = Kernels(generated, longest=256, shifted=_shifted, precise=True)
argmax, log_partition, marginals = _kernels.argmax, _kernels.log_partition, _kernels.marginals
log_partition_marginals, marginals_vjp = _kernels.log_partition_marginals, _kernels.marginals_vjp
marginals_and_product = _kernels.marginals_and_product
entropy, entropy_gradient, sample = _kernels.entropy, _kernels.entropy_gradient, _kernels.sample
