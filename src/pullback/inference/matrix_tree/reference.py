"""The matrix-tree theorem by state elimination in logs, differentiated automatically: plain, slow, obviously right."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.trees.family import TREES, draw


def value(scores: Tensor, lengths: Tensor, multiroot: bool, combine: Combine) -> Tensor:
    """Log Z, `[B]`, for sums only: elimination also divides, which maxima cannot."""
    n = scores.shape[-1]
    words = torch.arange(n, device=scores.device)
    real = words < lengths[:, None]
    roots = torch.where(real, scores.diagonal(dim1=1, dim2=2), 0.0)  # padding hangs from the root, for nothing
    if multiroot or n == 0:
        return _eliminate(scores, roots, combine)
    each = []
    for child in range(n):
        only = torch.where(real & (words != child), -torch.inf, roots)
        total = _eliminate(scores, only, combine)
        each.append(torch.where(real[:, child], total, -torch.inf))
    return torch.where(lengths == 0, 0.0, combine(torch.stack(each, 1), 1))


_, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, _ = operations(value, TREES.layout)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    good = log_partition(scores, lengths, multiroot=multiroot, validate=validate).isfinite()
    lengths = torch.where(good, lengths, 0)
    z = draw(lambda left: marginals(left, lengths, multiroot=multiroot, validate=False), scores, lengths, seeds)
    return torch.where(good[:, None, None], z, torch.nan)


def _eliminate(arcs: Tensor, roots: Tensor, combine: Combine) -> Tensor:
    """Log Z of arcs `[B, n, n]`, whose diagonal is not read, and root arcs `[B, n]`. README.md has the proof."""
    log_z = arcs.new_zeros(arcs.shape[0])
    for k in range(arcs.shape[-1] - 1, -1, -1):
        into_k = torch.cat([arcs[:, :k, k], roots[:, k : k + 1]], 1)
        total = combine(into_k, 1)
        log_z = log_z + total
        share = into_k - torch.where(total == -torch.inf, 0.0, total)[:, None]
        through_k = share[:, :, None] + arcs[:, k, None, :k]
        roots = combine(torch.stack([roots[:, :k], through_k[:, k]], 1), 1)
        arcs = combine(torch.stack([arcs[:, :k, :k], through_k[:, :k]], 1), 1)
    return log_z
