"""Subsets in plain PyTorch: one recursion, that of the elementary symmetric polynomials; and the capped simplex."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.engine.hypergraph import ranked, recursions
from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.front import checks
from pullback.inference.front.family import backend_of
from pullback.inference.subset.family import SUBSET


def value(scores: Tensor, lengths: Tensor, k: Tensor, combine: Combine) -> Tensor:
    """The ways to take exactly k."""
    batch, n = scores.shape
    most = n if scores.is_cuda or batch == 0 else int(k.clamp_max(n).max())  # no synchronisation on a GPU
    none = scores.new_full((batch, most + 1), -torch.inf)
    none[:, 0] = 0.0
    return torch.where(k <= lengths, ways_to_take(scores, k, none, combine), -torch.inf)


def ways_to_take(scores: Tensor, k: Tensor, ways: Tensor, combine: Combine) -> Tensor:
    """`ways[j]`, the value of j of the items so far: combine those without the next item and those with it."""
    nothing = scores.new_full((len(scores), 1), -torch.inf)
    for i in range(scores.shape[1]):
        taken = torch.cat([nothing, ways[:, :-1] + scores[:, i, None]], 1)
        ways = combine(torch.stack([ways, taken], 1), 1)
    return ways.gather(1, k.clamp_max(ways.shape[1] - 1)[:, None]).squeeze(1)


_, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, SUBSET.layout)


def argmax(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    """The k largest scores; the first of equals."""
    allowed, status = look(scores, lengths, k)
    s = torch.where(allowed, scores.detach(), -torch.inf)
    order = s.sort(dim=-1, descending=True, stable=True).indices
    first = (torch.arange(s.shape[-1], device=s.device) < k[:, None]).to(s.dtype)
    z = torch.zeros_like(s, memory_format=torch.contiguous_format).scatter_(-1, order, first)
    return checks.settled(z, status, validate)


def topk(scores: Tensor, lengths: Tensor, k: Tensor, count: int, *, validate: bool) -> tuple[Tensor, Tensor]:
    """The best subsets have the largest items, but for some of those around the k-th largest.

    A subset with the item of rank k + r is no better than the r subsets that have one of a lower rank in its place, and one
    without the item of rank k + 1 - r no better than r others. So of the `count` best, items of rank up to k + 1 - count are in
    all, and those from k + count on in none; the recursion chooses among the others.
    """
    allowed, status = look(scores, lengths, k)
    s = torch.where(allowed & (status == checks.OK)[:, None], scores.detach().double(), -torch.inf)
    ordered = s.sort(dim=1, descending=True, stable=True)
    n = s.shape[1]
    free = torch.clamp(k, 0, min(count - 1, n))  # how many are left to choose
    width = min(2 * (count - 1), n)
    always = (torch.clamp(k, 0, n) - free)[:, None]
    rank = always + torch.arange(width, device=s.device)
    window = torch.where(rank < n, ordered.values.gather(1, rank.clamp_max(max(n - 1, 0))), -torch.inf)
    run = ranked.operation(SUBSET.layout, recursions.graph_of(value, SUBSET.layout), backend_of(s), lambda shape: shape[0])
    chosen, totals = run(window, torch.full_like(k, width), free, count, validate=False)
    ranks = torch.arange(n, device=s.device)
    kept = torch.where(ranks < always, ordered.indices, n)
    items = torch.cat([ordered.indices, torch.full_like(k[:, None], n)], 1)
    free_items = items.gather(1, torch.where(chosen < width, always[:, :, None] + chosen, n).flatten(1)).reshape(chosen.shape)
    parts = torch.cat([kept[:, None].expand(-1, count, -1), free_items], 2).sort(2).values[:, :, :n]
    parts = torch.where((totals > -torch.inf)[:, :, None], parts, n)
    base = torch.where(ranks < always, ordered.values, 0.0).sum(1, keepdim=True)
    totals = torch.where(totals > -torch.inf, totals + base, -torch.inf)
    return parts, checks.settled(totals, status, validate)


def project(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    """Mu = min(max(s - tau, 0), 1) on the allowed items, with tau such that it sums to k.

    With the k-th largest score at 0, tau is in [-1, 0), so that scores may be cut off at -1 and 1. The sum falls with tau,
    linearly between the breakpoints s and s - 1: sorted, they tell in which piece it is k.
    """
    allowed, status = look(scores, lengths, k)
    if scores.shape[-1] == 0:
        return checks.settled(torch.zeros_like(scores), status, validate)
    s = torch.where(allowed, scores.detach().double(), -torch.inf)
    middle = s.sort(-1, descending=True).values.gather(1, (k.clamp(1, s.shape[-1]) - 1)[:, None])
    s = (s - torch.where(middle.isfinite(), middle, 0.0)).clamp(-1.0, 1.0)
    points, order = torch.cat([s, s - 1.0], 1).sort(-1, descending=True)
    kind = torch.cat([allowed.to(s), -allowed.to(s)], 1).gather(1, order)
    slope = kind.cumsum(1)  # how many items are between 0 and 1 right below each point
    total = (kind * points).cumsum(1) - slope * points
    last = ((total < k[:, None]).sum(1, keepdim=True) - 1).clamp_min(0)
    missing = (k[:, None] - total.gather(1, last)) / slope.gather(1, last).clamp_min(1.0)
    few = ((s > -1.0) & allowed).sum(1, keepdim=True) == k[:, None]  # one subset, which rounding would not quite reach
    tau = torch.where(few, -1.0, (points.gather(1, last) - missing).clamp_min(-1.0))
    mu = torch.where(allowed & (k > 0)[:, None], (s - tau).clamp(0.0, 1.0), 0.0)
    return checks.settled(mu.to(scores.dtype), status, validate)


def project_vjp(mu: Tensor, lengths: Tensor, k: Tensor, direction: Tensor, validate: bool) -> Tensor:
    """J v: v less its mean, on the items with 0 < mu < 1."""
    free = (mu > 0) & (mu < 1)
    v = torch.where(free, direction, 0.0)
    mean = v.sum(-1, keepdim=True) / free.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(free, v - mean, 0.0)


def look(scores: Tensor, lengths: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Which items are allowed, and a status for each example."""
    layout = SUBSET.layout
    scores = scores.detach()
    status = layout.status(scores, (lengths, k))
    allowed = layout.mask(scores, layout.in_range(scores, (lengths, k))) & (scores != -torch.inf)
    few = (status == checks.OK) & (allowed.sum(-1) < k)
    return allowed, torch.where(few, checks.INFEASIBLE, status)
