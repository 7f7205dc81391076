"""Whether a point near the marginals is inside the marginal polytope: a certificate by linear algebra alone.

Let t be a random tree with p(t) proportional to exp(<s, t>), mu = E[t] its marginals, C = Cov(t) their Jacobian, and let
delta be a direction of the polytope's affine hull. Solve C a = delta. With f(t) = 1 + <a, t - mu>,

    E[f(t)] = 1,    E[f(t) t] = mu + C a = mu + delta.

So if f(t) >= 0 for every tree, f(t) p(t) is a distribution over trees, and its mean, mu + delta, is in the polytope. One
argmax, of -a, tells. SparseMAP would have to express the point by hundreds of trees.

The system is solved by conjugate gradients; a product with C is one derivative of the marginals. With a residual
r = C a - delta it is mu + delta + r that is certified, and mu + delta is at most |r| away from its projection.
The converse does not hold: not certified does not mean outside.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pullback.inference import operators

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
"""The largest |r| / |delta| of a certificate. Steps of 1e-5 are themselves rounded to 1e-7 where they are
added to marginals in float32, so 1e-4 of a step is below what float32 can tell."""

MAX_ITERATIONS = {torch.float32: 32, torch.float64: 64}
"""Of conjugate gradients: about twice what sentences of 50 words take under the marginals of an untrained model."""

Among = Callable[[Tensor, Tensor], Tensor]
"""From values `[B, n, n]` and which sentences matter `[B]` to a result `[B, n, n]`; those that do not may get zeros."""


def step_inside(
    scores: Tensor, lengths: Tensor, flags: tuple[bool, bool, bool], allowed: Tensor, mu: Tensor, step: Tensor
) -> tuple[Tensor, Tensor]:
    """The step along the affine hull of the trees, and whether mu less that step is surely inside the polytope.

    Args:
        scores: `[B, n, n]`, float32 or float64.
        lengths: `[B]`.
        flags: projective, multiroot, validate.
        allowed: `[B, n, n]` of bool.
        mu: the marginals of the scores.
        step: `[B, n, n]`; what is not allowed is not read.

    Returns:
        The step's part along the affine hull, `[B, n, n]`, and `[B]` of bool. Where the latter is true, the former is
        what the projection of mu - step is away from mu, up to `TOLERANCE` of its norm.
    """
    projective, multiroot, _ = flags
    checked = projective, multiroot, False

    def covariance(direction: Tensor, among: Tensor) -> Tensor:
        return operators.tree_marginals_vjp(scores, torch.where(among, lengths, 0), direction, *checked)

    def lowest(values: Tensor, among: Tensor) -> Tensor:
        negated = torch.where(allowed, -values, -torch.inf)
        return operators.tree_argmax(negated, torch.where(among, lengths, 0), *checked)

    moved = _along_the_hull(step, allowed, multiroot)
    # Strictly: what no tree uses has mu = 0, and must neither move nor be divided by.
    possible = (torch.where(allowed, torch.minimum(mu, mu - moved), 1.0) > 0).flatten(1).all(1)
    return moved, _certified(torch.where(allowed, mu, 1.0), -moved, possible, covariance, lowest)


def _along_the_hull(step: Tensor, allowed: Tensor, multiroot: bool) -> Tensor:
    """The orthogonal projection onto the directions in which a word's parts, and a single root's, keep their sum."""
    moved = _columns_centred(step, allowed)
    if multiroot:
        return moved
    roots = torch.eye(step.shape[-1], dtype=step.dtype, device=step.device)
    roots = _columns_centred(roots.expand_as(step), allowed)
    weight = _dot(roots, moved) / _dot(roots, roots).clamp_min(torch.finfo(step.dtype).tiny)
    return moved - weight[:, None, None] * roots


def _columns_centred(values: Tensor, allowed: Tensor) -> Tensor:
    values = torch.where(allowed, values, 0.0)
    mean = values.sum(-2, keepdim=True) / allowed.sum(-2, keepdim=True).clamp_min(1)
    return torch.where(allowed, values - mean, 0.0)


def _certified(mu: Tensor, delta: Tensor, possible: Tensor, covariance: Among, lowest: Among) -> Tensor:
    """For which sentences, `[B]`, mu + delta is certified; `possible` are the ones to try."""
    accuracy = TOLERANCE[mu.dtype] * _norm(delta)
    a = _solve(mu, delta, possible, covariance, accuracy / 2)
    if a is None:
        return torch.zeros_like(possible)
    close = _norm(covariance(a, possible) - delta) <= accuracy
    least = 1 + _dot(a, lowest(a, possible)) - _dot(a, mu)
    rounding = a.shape[-1] ** 2 * torch.finfo(a.dtype).eps * _norm(a)
    return possible & close & (least >= rounding)


def _solve(mu: Tensor, delta: Tensor, possible: Tensor, covariance: Among, accuracy: Tensor) -> Tensor | None:
    """The a of |C a - delta| <= accuracy, where the iterations suffice; None if no sentence is worth one.

    Conjugate gradients preconditioned by 1 / mu, which for words with independent heads is the inverse. On a GPU the number of
    iterations is fixed, so that nothing waits for the device, and sentences that are done cost next to nothing.
    """
    waits = delta.device.type == "cpu"
    if waits and not possible.any():
        return None
    a = torch.zeros_like(delta)
    residual = torch.where(possible[:, None, None], delta, 0.0)
    direction = scaled = residual / mu
    size = _dot(residual, scaled)
    active = possible & (_norm(residual) > accuracy)
    for _ in range(MAX_ITERATIONS[delta.dtype]):
        if waits and not active.any():
            break
        image = covariance(direction, active)
        length = torch.where(active, size / _dot(direction, image), 0.0)[:, None, None]
        a = a + length * direction
        residual = residual - length * image
        scaled = residual / mu
        before, size = size, _dot(residual, scaled)
        direction = scaled + torch.where(active, size / before, 0.0)[:, None, None] * direction
        active = active & (_norm(residual) > accuracy)
    return a


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).flatten(1).sum(1)


def _norm(a: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a, dim=(-2, -1))
