"""The operations about members: the k best, whether a tensor is one, and the probability of those within some parts."""

from __future__ import annotations

import numpy as np
import torch

from . import exact
from .compare import Check

_BEST = 3


def check_members(this: Check) -> None:
    """`topk`, `contains` and `log_prob_within`, by enumeration."""
    batch = this.batch
    z = this.structure.argmax(this.scores).detach()
    flipped = torch.where(torch.sin(torch.arange(float(z.numel()), device=z.device)).reshape(z.shape) > 0.9, 1 - z, z)
    for one in (z, flipped):
        found = this.structure.contains(one).cpu().tolist()
        this.count += len(found)
        for i in range(len(found)):
            known = exact.all_members_of(batch, i)
            inside = torch.where(batch.scores[i].isnan(), 0.0, one[i].cpu().double()).flatten()
            if not this.infeasible[i] and found[i] != bool((known == inside).all(1).any()):
                this.wrong("contains", i, f"is {found[i]}")
    if bool((batch.masked & batch.scores.isfinite()).any()) or this.dtype.itemsize == 2:
        return  # structures with finite masks are the second best, and their scores have no digits
    best = this.structure.topk(this.scores, _BEST).scores
    allowed = torch.sin(3.0 * torch.arange(float(batch.scores.numel())) + 1.0).reshape(batch.scores.shape) > -0.5
    within = this.structure.log_prob_within(this.scores, allowed.to(this.device)) if this.subject.gibbs else None
    tops, shares = [], []
    for i in range(len(batch.sizes)):
        known = exact.enumerated(batch, i)
        totals = np.sort(known.totals)[::-1][:_BEST]
        tops.append(np.concatenate([totals, np.full(_BEST - len(totals), -np.inf)]))
        left = ~(known.z[:, ~allowed[i].flatten().numpy()] > 0).any(1)
        weights = known.totals
        shares.append(_log_sum(weights[left]) - _log_sum(weights) if left.any() else -np.inf)
    for i in range(_BEST):
        _compare(this, f"score {i} of topk", best[i], np.array([row[i] for row in tops]))
    if within is not None:
        _compare(this, "log_prob_within", within, np.array(shares))


def _log_sum(x: np.ndarray) -> float:
    return x.max() + np.log(np.exp(x - x.max()).sum()) if len(x) else np.nan


def _compare(this: Check, operation: str, found: torch.Tensor, expected: np.ndarray) -> None:
    """As `Check.compare`, where -inf says that there is none; examples without structures are left out."""
    none = np.isneginf(expected.astype(float))
    got = found.detach().cpu().double().masked_fill(torch.tensor(this.infeasible), torch.nan)
    for i in np.flatnonzero(none):
        if not this.infeasible[i] and got[i] != -torch.inf:
            this.wrong(operation, int(i), f"is {got[i]} for -inf")
    this.compare(operation, got, np.where(none, np.nan, expected), 2.0, rounding=3.0)
