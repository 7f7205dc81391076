"""Whether a point near the marginals is inside the marginal polytope: a certificate by linear algebra alone.

Let t be a random tree with p(t) proportional to exp(<s, t>), mu = E[t] its marginals, C = Cov(t) their Jacobian, and let
delta be a direction of the polytope's affine hull. Solve C a = delta. With f(t) = 1 + <a, t - mu>,

    E[f(t)] = 1,    E[f(t) t] = mu + C a = mu + delta.

So if f(t) >= 0 for every tree, f(t) p(t) is a distribution over trees, and its mean, mu + delta, is in the polytope. One
argmax, of -a, tells. SparseMAP would have to express the point by hundreds of trees.

If f is negative somewhere, the same is tried from other scores, whose marginals are nearer to the point: s + a, a step of
Newton's method for Marg(s) = mu + delta, or a part of it.

The system is solved by conjugate gradients; a product with C is one derivative of the marginals. With a residual
r = C a - delta it is mu + delta + r that is certified, and mu + delta is at most |r| away from its projection.
The converse does not hold: not certified does not mean outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pullback.inference.trees.family import TREES

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
"""The largest |r| of a certificate, as a share of the step. Steps of 1e-5 are themselves rounded to 1e-7 where they are
added to marginals in float32, so 1e-4 of a step is below what float32 can tell."""

MAX_ITERATIONS = {torch.float32: 32, torch.float64: 64}
"""Of conjugate gradients: about twice what sentences of 50 words take under the marginals of an untrained model."""

ROUNDS = 3
"""From how many scores a certificate is tried. The first is enough for an untrained model."""

SHORT = 12
"""Up to how many words a certificate is tried once only: SparseMAP is quicker than another round."""

_LONGEST = 5.0
"""By how much a Newton step may lower the score of a tree against the mean; beyond, linear predictions fail."""


@dataclass(frozen=True)
class _Trees:
    """Inference for some sentences of a batch, `among` `[B]`; the others get zeros, at next to no cost."""

    lengths: Tensor
    projective: bool
    multiroot: bool
    allowed: Tensor

    def marginals(self, scores: Tensor, among: Tensor) -> Tensor:
        return TREES.marginals(scores, *self._options(among))

    def covariance(self, scores: Tensor, direction: Tensor, among: Tensor) -> Tensor:
        lengths, *flags = self._options(among)
        return TREES.marginals_vjp(scores, lengths, direction, *flags)

    def lowest(self, values: Tensor, among: Tensor) -> Tensor:
        """A tree of the lowest sum of values."""
        return TREES.argmax(torch.where(self.allowed, -values, -torch.inf), *self._options(among))

    def along_the_hull(self, step: Tensor) -> Tensor:
        """The orthogonal projection onto the directions in which a word's parts, and a single root's, keep their sum."""
        moved = self._columns_centred(step)
        if self.multiroot:
            return moved
        roots = torch.eye(step.shape[-1], dtype=step.dtype, device=step.device)
        roots = self._columns_centred(roots.expand_as(step))
        weight = _dot(roots, moved) / _dot(roots, roots).clamp_min(torch.finfo(step.dtype).tiny)
        return moved - weight[:, None, None] * roots

    def _columns_centred(self, values: Tensor) -> Tensor:
        values = torch.where(self.allowed, values, 0.0)
        mean = values.sum(-2, keepdim=True) / self.allowed.sum(-2, keepdim=True).clamp_min(1)
        return torch.where(self.allowed, values - mean, 0.0)

    def _options(self, among: Tensor) -> tuple[Tensor, bool, bool, bool]:
        return torch.where(among, self.lengths, 0), self.projective, self.multiroot, False


def step_inside(
    scores: Tensor, lengths: Tensor, flags: tuple[bool, bool, bool], allowed: Tensor, mu: Tensor, step: Tensor
) -> tuple[Tensor, Tensor]:
    """The step along the affine hull of the trees, `[B, n, n]`, and whether mu less that step is surely inside the polytope,
    `[B]`.

    Where it is, the projection of mu - step is that far from mu, up to `TOLERANCE` of the step's norm and the rounding of
    mu. On a GPU the number of iterations is fixed, so that nothing waits for the device. `flags` are projective, multiroot,
    validate; mu are the marginals of the scores; of the step, what is not allowed is not read.
    """
    trees = _Trees(lengths, flags[0], flags[1], allowed)
    moved = trees.along_the_hull(step)
    point, delta = mu - moved, -moved
    accuracy = TOLERANCE[mu.dtype] * _norm(moved)
    inside = torch.zeros_like(lengths, dtype=torch.bool)
    for last in [False] * (ROUNDS - 1) + [True]:
        # Strictly: what no tree uses has mu = 0, and must neither move nor be divided by.
        left = ~inside & (torch.where(allowed, torch.minimum(mu, point), 1.0) > 0).flatten(1).all(1)
        if _none(left):
            break
        a, least, close = _density(trees, scores, torch.where(allowed, mu, 1.0), delta, left, accuracy)
        inside = inside | (left & close & (least >= 0))
        left = left & ~inside & (lengths > SHORT)
        if last or _none(left):
            break
        share = (_LONGEST / (1 - least)).clamp(0, 1)
        scores = torch.addcmul(scores, share[:, None, None], a)
        mu = trees.marginals(scores, left)
        delta = trees.along_the_hull(point - mu)
    return moved, inside


def _density(
    trees: _Trees, scores: Tensor, mu: Tensor, delta: Tensor, among: Tensor, accuracy: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The a of f(t) = 1 + <a, t - mu>, the least f(t) less what rounding may hide, and whether a is accurate."""
    a = _solve(trees, scores, mu, delta, among, accuracy / 2)
    close = _norm(trees.covariance(scores, a, among) - delta) <= accuracy
    least = 1 + _dot(a, trees.lowest(a, among)) - _dot(a, mu)
    rounding = a.shape[-1] ** 2 * torch.finfo(a.dtype).eps * _norm(a)
    return a, least - rounding, close


def _solve(trees: _Trees, scores: Tensor, mu: Tensor, delta: Tensor, among: Tensor, accuracy: Tensor) -> Tensor:
    """The a of |C a - delta| <= accuracy, where the iterations suffice.

    Conjugate gradients preconditioned by 1 / mu, which for words with independent heads is the inverse.
    """
    a = torch.zeros_like(delta)
    residual = torch.where(among[:, None, None], delta, 0.0)
    direction = scaled = residual / mu
    size = _dot(residual, scaled)
    active = among & (_norm(residual) > accuracy)
    for _ in range(MAX_ITERATIONS[delta.dtype]):
        if _none(active):
            break
        image = trees.covariance(scores, direction, active)
        length = torch.where(active, size / _dot(direction, image), 0.0)[:, None, None]
        a = torch.addcmul(a, length, direction)
        residual = torch.addcmul(residual, length, image, value=-1)
        scaled = residual / mu
        before, size = size, _dot(residual, scaled)
        direction = torch.addcmul(scaled, torch.where(active, size / before, 0.0)[:, None, None], direction)
        active = active & (_norm(residual) > accuracy)
    return a


def _none(sentences: Tensor) -> bool:
    """Whether no sentence is left; false on a GPU, where the answer would have to wait for the device."""
    return sentences.device.type == "cpu" and not sentences.any()


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).flatten(1).sum(1)


def _norm(a: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a, dim=(-2, -1))
