"""Subsets of at most k items in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.engine.hypergraph import ranked
from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.front import checks
from pullback.inference.front.family import backend_of
from pullback.inference.knapsack.derivations import graph
from pullback.inference.subset import reference as exactly
from pullback.inference.subset.family import SUBSET


def value(scores: Tensor, lengths: Tensor, k: Tensor, most: int, combine: Combine) -> Tensor:
    """The ways to take at most k: of no items there is one for each k."""
    return exactly.ways_to_take(scores, k, scores.new_zeros(len(scores), largest(scores, k, most) + 1), combine)


_, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, SUBSET.layout)


def argmax(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    """The k largest scores, as far as they are positive; the first of equals."""
    allowed, status = look(scores, lengths, k)
    s = torch.where(allowed, scores.detach(), 0.0)
    ordered = s.sort(dim=-1, descending=True, stable=True)
    taken = (torch.arange(s.shape[-1], device=s.device) < k[:, None]) & (ordered.values > 0)
    z = torch.zeros_like(s, memory_format=torch.contiguous_format).scatter_(-1, ordered.indices, taken.to(s.dtype))
    return checks.settled(z, status, validate)


def topk(scores: Tensor, lengths: Tensor, k: Tensor, count: int, *, most: int, validate: bool) -> tuple[Tensor, Tensor]:
    n, most = scores.shape[1], largest(scores, k, most)
    run = ranked.operation(SUBSET.layout, graph, backend_of(scores), lambda shape, **options: shape[0])
    small = torch.where(k < 0, k, k.clamp_max(most))
    return run(scores, lengths, small, count, costs=unit_costs(n), most=most, validate=validate)


def project(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    """The scores cut off at 0 and 1 where these sum to at most k; else the projection onto subsets of exactly k items."""
    allowed, status = look(scores, lengths, k)
    mu = torch.where(allowed, scores.detach().clamp(0.0, 1.0), 0.0)
    over = mu.sum(1, dtype=torch.float64) > k
    onto = exactly.project(scores, lengths, torch.where(over, k, 0), validate=False)
    return checks.settled(torch.where(over[:, None], onto, mu), status, validate)


def project_vjp(mu: Tensor, lengths: Tensor, k: Tensor, direction: Tensor, validate: bool) -> Tensor:
    """J v: v on the items with 0 < mu < 1, less its mean where mu sums to k, up to rounding."""
    rounding = 8 * torch.finfo(mu.dtype).eps * (1 + mu.shape[1])
    tight = mu.sum(1, dtype=torch.float64) > k.double() - rounding
    free = torch.where((mu > 0) & (mu < 1), direction, 0.0)
    return torch.where(tight[:, None], exactly.project_vjp(mu, lengths, k, direction, validate), free)


def look(scores: Tensor, lengths: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Which items are allowed, and a status for each example: the empty subset is always there."""
    layout, scores = SUBSET.layout, scores.detach()
    allowed = layout.mask(scores, layout.in_range(scores, (lengths, k))) & (scores != -torch.inf)
    return allowed, layout.status(scores, (lengths, k))


def largest(scores: Tensor, k: Tensor, most: int) -> int:
    """The largest k that makes a difference. On a GPU, where looking at k would synchronise, it is `most`, if the structure
    knows that, or n.
    """
    batch, n = scores.shape
    return max(min(n, most), 0) if scores.is_cuda or batch == 0 else int(k.clamp(0, n).max())


def unit_costs(n: int) -> bytes:
    return torch.ones(n, dtype=torch.long).numpy().tobytes()
