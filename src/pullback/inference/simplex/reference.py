"""Sparsemax by sorting: the ground truth.

    mu = max(s - tau, 0),  tau such that mu sums to one.

With scores in falling order, the support is the largest k with 1 + k s_k > s_1 + ... + s_k.
"""

from __future__ import annotations

import torch
from torch import Tensor


def project(scores: Tensor, validate: bool) -> Tensor:
    s = scores - scores.amax(-1, keepdim=True)  # exact at large scores; the projection does not change
    ordered = s.sort(-1, descending=True).values
    inside = ordered > -torch.inf
    sums = torch.where(inside, ordered, 0.0).cumsum(-1)
    ranks = torch.arange(1, s.shape[-1] + 1, device=s.device, dtype=s.dtype)
    size = (inside & (1 + ranks * ordered > sums)).sum(-1, keepdim=True).clamp_min(1)
    tau = (sums.gather(-1, size - 1) - 1) / size
    return (s - tau).clamp_min(0.0)


def project_vjp(mu: Tensor, direction: Tensor, validate: bool) -> Tensor:
    """J v = v less its mean over the support, zero elsewhere."""
    support = mu > 0
    inside = torch.where(support, direction, 0.0)
    mean = inside.sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
    return torch.where(support, direction - mean, 0.0)
