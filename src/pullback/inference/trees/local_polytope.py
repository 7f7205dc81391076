"""The projection onto the local polytope of dependency trees: every word has one head, and a word, or more, has the root.

    L = { mu >= 0,   sum over h of mu(h, m) = 1 for each word m,   sum over m of mu(m, m) >= 1 }

with the root on the diagonal, and = 1 where there is a single one. L contains every tree, and so the marginal polytope M; but
not all of its points are averages of trees. Where the projection onto L is in M, it is the projection onto M.

Without the last constraint it is sparsemax of each word's scores. With it, a number is added to all scores of the root such
that its sum is one. The sum grows with that number, in straight pieces: Newton's method finds it, kept in bounds by bisection.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.family import backend_of
from pullback.inference.simplex.family import SIMPLEX
from pullback.inference.trees import local_polytope_cuda

_ITERATIONS = 40  # half of them Newton's, half of them bisections


def project(scores: Tensor, allowed: Tensor, multiroot: bool) -> Tensor:
    """The nearest points of L, `[B, n, n]`, zero on what is not allowed; on a GPU nothing waits for the device.

    `scores` are float64; the words with an allowed head are those of the sentence.
    """
    if scores.numel() == 0:
        return torch.zeros_like(scores)
    if backend_of(scores) == "cuda" and scores.shape[-1] <= local_polytope_cuda.LONGEST:
        return local_polytope_cuda.project(scores, allowed, multiroot)
    scores = torch.where(allowed, scores, -torch.inf)
    free = _heads(scores, allowed)
    needed = _roots(free) < 1 if multiroot else torch.ones(len(scores), dtype=torch.bool, device=scores.device)
    if scores.device.type == "cpu" and not needed.any():
        return free
    by = torch.where(needed, _search(scores, allowed, multiroot), 0.0)
    return _heads(_lift(scores, by), allowed)


def is_empty(allowed: Tensor, words: Tensor, multiroot: bool) -> Tensor:
    """For which sentences, `[B]`, L is empty: a word has no head, no word the root, or several nothing else and may not.

    `words` `[B, n]` says which are not padding.
    """
    root = allowed.diagonal(dim1=-2, dim2=-1)
    heads = allowed.sum(-2)
    empty = (words & (heads == 0)).any(-1) | (words.any(-1) & ~root.any(-1))
    return empty if multiroot else empty | ((root & (heads == 1)).sum(-1) > 1)


def _search(scores: Tensor, allowed: Tensor, multiroot: bool) -> Tensor:
    """Returns the numbers `[B]` that, added to the scores of the root, make its sum one."""
    low, high = _interval(scores, allowed, multiroot)
    found = x = high
    error = torch.full_like(high, torch.inf)
    for iteration in range(_ITERATIONS):
        mu = _heads(_lift(scores, x), allowed)
        excess = _roots(mu) - 1
        closer = excess.abs() < error
        found, error = torch.where(closer, x, found), torch.where(closer, excess.abs(), error)
        low, high = torch.where(excess < 0, x, low), torch.where(excess < 0, high, x)
        newton = x - excess / _slope(mu)
        use = (newton > low) & (newton < high) & (iteration % 2 == 0)
        x = torch.where(use, newton, (low + high) / 2)
    return found


def _slope(mu: Tensor) -> Tensor:
    """The derivative of the root's sum by what is added to its scores: 1 - 1/k for a word with the root among k heads."""
    support = (mu > 0).sum(-2).clamp_min(1)
    return torch.where(mu.diagonal(dim1=-2, dim2=-1) > 0, 1 - 1 / support, 0.0).sum(-1)


def _heads(scores: Tensor, allowed: Tensor) -> Tensor:
    """Sparsemax of each word's scores."""
    n = scores.shape[-1]
    columns = torch.where(allowed.any(-2, keepdim=True), scores, 0.0).mT
    return torch.where(allowed, SIMPLEX.project(columns.reshape(-1, n), False).view_as(scores).mT, 0.0)


def _roots(mu: Tensor) -> Tensor:
    return mu.diagonal(dim1=-2, dim2=-1).sum(-1)


def _lift(scores: Tensor, by: Tensor) -> Tensor:
    return scores + torch.diag_embed(by[:, None].expand(scores.shape[:-1]))


def _interval(scores: Tensor, allowed: Tensor, multiroot: bool) -> tuple[Tensor, Tensor]:
    """Bounds of what to add to the root's scores: with the first no word has the root that has another head, with the second
    some word has nothing else.
    """
    root = scores.diagonal(dim1=-2, dim2=-1)
    others = _lift(scores, torch.full_like(scores[:, 0, 0], -torch.inf)).amax(-2)
    choice = allowed.diagonal(dim1=-2, dim2=-1) & (others > -torch.inf)
    lead = torch.where(choice, root - torch.where(choice, others, 0.0), -torch.inf).amax(-1)
    lead = torch.where(lead > -torch.inf, lead, 0.0)  # the largest of the root over a word's best other head
    low, high = -2 - lead, 1 - lead
    return (low.clamp_min(0), high.clamp_min(0)) if multiroot else (low, high)
