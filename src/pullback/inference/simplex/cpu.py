"""Sparsemax on the CPU: compiled, rows spread over threads."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.simplex import kernels

_ROWS = 64  # a unit of work for a thread


def project(scores: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    mu = torch.empty_like(s)
    spread(kernels.project, -(-s.shape[0] // _ROWS), 4.0 * s.numel(), _ROWS, s.numpy(), mu.numpy())
    return mu


def project_vjp(mu: Tensor, direction: Tensor, validate: bool) -> Tensor:
    mu, v = mu.detach().contiguous(), direction.detach().contiguous()
    out = torch.empty_like(v)
    spread(kernels.project_vjp, -(-v.shape[0] // _ROWS), 4.0 * v.numel(), _ROWS, mu.numpy(), v.numpy(), out.numpy())
    return out
