"""The matrix-tree theorem by state elimination in logs, differentiated automatically: plain, slow, obviously right."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference import checks, random
from pullback.inference.differentiate import gradient, hessian_product
from pullback.inference.trees import from_heads

_FORBIDDEN = -1e15  # stands for -inf where gradients are taken: below any real score, far from overflow


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_z = _log_partition(_safe(scores, lengths, validate), lengths, multiroot)
    if validate:
        checks.raise_for((log_z < _FORBIDDEN / 2) * checks.INFEASIBLE, lengths, scores.shape[-1])
    return log_z


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_partition(scores, lengths, multiroot, validate)
    mu = _marginals(_safe(scores, lengths, validate), lengths, multiroot)
    return mu.clamp(0.0, 1.0).to(scores.dtype)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    safe = _safe(scores, lengths, validate)
    v = checks.only_words(direction.double(), lengths)
    return hessian_product(lambda s: _log_partition(s, lengths, multiroot), safe, v).to(scores.dtype)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_z = log_partition(scores, lengths, multiroot, validate)
    safe = _safe(scores, lengths, validate)
    return (log_z - (_marginals(safe, lengths, multiroot) * safe).sum((1, 2))).clamp_min(0.0)


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """-J s, from which a constant of each column drops out: its largest score goes."""
    safe = _safe(scores, lengths, validate)
    along = safe - safe.amax(1, keepdim=True) if safe.numel() > 0 else safe
    return -marginals_vjp(scores, lengths, along, multiroot, validate)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """Word after word, a head from its marginals given the heads of the words before."""
    log_partition(scores, lengths, multiroot, validate)
    safe = _safe(scores, lengths, validate)
    streams = [random.stream(seed) for seed in seeds.tolist()]
    heads = torch.full(scores.shape[:2], -1, dtype=torch.long)
    for m in range(scores.shape[-1]):
        cumulative = _marginals(safe, lengths, multiroot)[:, :, m].clamp_min(0.0).cumsum(1)
        for b in torch.nonzero(lengths > m).flatten().tolist():
            h = int((cumulative[b] <= streams[b]() * cumulative[b, -1]).sum())
            heads[b, m] = h
            chosen = safe[b, h, m].clone()
            safe[b, :, m] = _FORBIDDEN
            safe[b, h, m] = chosen
    return from_heads(heads, scores.dtype)


def _marginals(safe: Tensor, lengths: Tensor, multiroot: bool) -> Tensor:
    return gradient(lambda s: _log_partition(s, lengths, multiroot), safe)


def _log_partition(safe: Tensor, lengths: Tensor, multiroot: bool) -> Tensor:
    n = safe.shape[-1]
    real = checks.word_mask(lengths, n)
    arcs = torch.where(real[:, :, None] & real[:, None, :], safe, _FORBIDDEN)
    roots = torch.where(real, safe.diagonal(dim1=1, dim2=2), 0.0)
    if multiroot or n == 0:
        return _eliminate(arcs, roots)
    each = []
    for child in range(n):
        only = torch.where(torch.arange(n) == child, roots, _FORBIDDEN)
        total = _eliminate(arcs, torch.where(real, only, roots))
        each.append(torch.where(real[:, child], total, torch.where(lengths == 0, 0.0, -torch.inf)))
    return torch.where(lengths == 0, 0.0, torch.stack(each).logsumexp(0))


def _eliminate(arcs: Tensor, roots: Tensor) -> Tensor:
    """Log Z of arcs `[B, n, n]`, whose diagonal is not read, and root arcs `[B, n]`. README.md has the proof."""
    log_z = arcs.new_zeros(arcs.shape[0])
    for k in range(arcs.shape[-1] - 1, -1, -1):
        into_k = torch.cat([arcs[:, :k, k], roots[:, k : k + 1]], 1)
        total = into_k.logsumexp(1)
        log_z = log_z + total
        through_k = (into_k - total[:, None])[:, :, None] + arcs[:, k, None, :k]
        roots = torch.stack([roots[:, :k], through_k[:, k]]).logsumexp(0)
        arcs = torch.stack([arcs[:, :k, :k], through_k[:, :k]]).logsumexp(0)
    return log_z


def _safe(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    """Scores in float64 without -inf and without what padding holds."""
    if validate:
        checks.raise_for(checks.status_of(scores, lengths), lengths, scores.shape[-1])
    return checks.only_words(scores.detach().double(), lengths).clamp_min(_FORBIDDEN)
