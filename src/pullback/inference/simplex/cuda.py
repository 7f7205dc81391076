"""Sparsemax on a GPU, in PyTorch's own operations: no sorting where there are few classes."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.simplex import reference

_FEW = 16  # classes up to which all pairs are compared: sorting many short rows is slow


def project(scores: Tensor, validate: bool) -> Tensor:
    if scores.shape[-1] > _FEW:
        return reference.project(scores, validate)
    s = scores - scores.amax(-1, keepdim=True)
    others, own = s.unsqueeze(-2), s.unsqueeze(-1)
    above = others >= own
    support = 1 + above.sum(-1) * s > torch.where(above, others, 0.0).sum(-1)
    tau = (torch.where(support, s, 0.0).sum(-1, keepdim=True) - 1.0) / support.sum(-1, keepdim=True)
    return (s - tau).clamp_min(0.0)
