"""Exact samples forward, the marginals' Jacobian backward (SIMPLE: Ahmed et al., 2023; ReinMax: Liu et al., 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, Layer, needs_objective
from pullback.estimators.baselines import Point, known_point
from pullback.estimators.checks import at_least, event_dims, losses_of, warn_if_unused
from pullback.estimators.controlled import Draws, controlled_losses
from pullback.estimators.surrogate import linear
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.structures import Structure


class SampledSTE(Layer):
    """SIMPLE, for every structure: an exact sample forward, the marginals' Jacobian backward.

        z ~ p(z) proportional to exp(<s, z>),    gradient J_Marg(s)' gamma(z)

    Unbiased for losses that are linear in z. At evaluation z is the argmax.

    >>> import torch
    >>> from pullback import Categorical
    >>> SampledSTE()(Categorical(), torch.tensor([[1.0, -torch.inf]]))
    tensor([[1., 0.]])
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        z = structure.sample(scores.detach())
        if not may_be_differentiated(scores):
            return z
        mu = structure.marginals(scores)
        return z + (mu - mu.detach())

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


class ReinMax(Estimator):
    """ReinMax, for every structure: an exact sample forward, a gradient of second order backward.

        z ~ p(z) proportional to exp(<s, z>),    d = z - Marg(s),
        gradient 1/2 [J_Marg(s)' gamma(z) + d <d, gamma(z)>]

    Unbiased for losses that are quadratic in z. For a categorical it is the published rule, 2 J((p + z) / 2)' gamma -
    J(p)' gamma / 2: J_Marg(s) is the covariance of z, and that of the half-half mixture of p and the point z is J / 2
    + d d' / 4. Each of several structures of one example has its own d. At evaluation z is the argmax.

    With a point it has a control variate b, a gradient that does not depend on z, and the same expectation:

        gradient 1/2 [J_Marg(s)' (gamma(z) + b) + d <d, gamma(z) - b>]

    Args:
        samples: the number of z per example, found by one call of `sample`; the gradient is their mean. A layer takes only one.
        point: where b is taken: at the other `samples` (the mean of their gammas; at least two), or at the `marginals`, with
            one more call of `downstream`; None for b = 0. A layer takes only None.

    >>> import torch
    >>> from pullback import Categorical
    >>> ReinMax()(Categorical(), torch.tensor([[1.0, -torch.inf]]))
    tensor([[1., 0.]])
    """

    _unlisted: ClassVar[Mapping[str, Any]] = {"samples": 1, "point": None}

    def __init__(self, samples: int = 1, point: Point | None = None) -> None:
        self.samples = at_least(self, "samples", samples, 2 if point == "samples" else 1)
        self.point = None if point is None else known_point(self, point)

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        if self.samples == 1 and self.point is None:
            z = self(structure, scores)
            losses = losses_of(structure, scores, downstream(z))
            warn_if_unused(self, downstream, losses, z)
            return losses

        def gradient(draws: Draws) -> Tensor:
            dims = event_dims(structure)
            inner = (draws.offsets * (draws.gammas - draws.controls)).sum(dims, keepdim=True)
            return (draws.product((draws.gammas + draws.controls).mean(0)) + (draws.offsets * inner).mean(0)) / 2

        return controlled_losses(structure, scores, downstream, gradient, self.samples, self.point, owner=self)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        if self.samples > 1 or self.point is not None:
            raise needs_objective(self, "its gradient needs that of several points")
        z = structure.sample(scores.detach())
        if not may_be_differentiated(scores):
            return z
        mu = structure.marginals(scores)
        d, allowed = z - mu.detach(), structure.allowed(scores.detach())

        def along(gamma: Tensor) -> Tensor:
            inner = (d * torch.where(allowed, gamma, 0.0)).sum(event_dims(structure), keepdim=True)
            return torch.where(allowed, d * inner, 0.0) / 2

        return z + (mu - mu.detach()) / 2 + linear(scores, torch.zeros_like(z), along)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)
