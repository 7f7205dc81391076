"""Perturbed optimisers (Berthet et al., 2020): the mean of perturbed argmaxes, with a Monte-Carlo Jacobian."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.estimators.base import Layer
from pullback.estimators.checks import at_least, event_dims, positive
from pullback.estimators.noise import Gumbel, Noise, drawn, noise_or_gumbel
from pullback.estimators.surrogate import linear
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.inference.front.layout import working
from pullback.structures import Structure


class PerturbedArgmax(Layer):
    """DPO: the mean of perturbed argmaxes, a relaxation whose Jacobian is estimated from the same samples.

        z_i = argmax(s + sigma g_i),    zbar = mean of the z_i,
        gradient 1 / (S sigma) * sum over i of nu'(g_i) <z_i - b_i, gamma(zbar)>

    with exp(-nu) the density of the noise: nu'(g) = g for normal noise and 1 - exp(-g) for Gumbel noise. The baseline
    b_i is the mean of the other samples, or argmax(s) if there is one sample only: it does not change the mean, and
    without it the variance grows as 1 / sigma. At evaluation there is no noise: argmax(s).

    All samples are found by one call of `argmax`, on `[samples, ..., *parts]`. It needs only an `argmax` of the
    structure.

    Args:
        sigma: > 0, the scale of the noise; 0.05 to 1 is usual.
        samples: S; 10 to 1000 is usual.
        noise: `Gumbel()`, `Normal()`, or any noise with `score(g)` = nu'(g); None is `Gumbel()`.
    """

    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}

    def __init__(self, sigma: float = 1.0, samples: int = 10, noise: Noise | None = None) -> None:
        self.sigma = positive(self, "sigma", sigma)
        self.samples = at_least(self, "samples", samples, 1)
        self.noise = noise_or_gumbel(noise)
        if not callable(getattr(self.noise, "score", None)):
            raise TypeError(
                f"PerturbedArgmax: the noise {noise!r} has no score(g), the derivative of minus its log-density, "
                f"which the Jacobian needs; use Gumbel() or Normal(), or IMLE, which takes any noise"
            )

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        fixed = working(scores.detach())
        noise = drawn(self.noise, fixed, self.samples)
        z = structure.argmax(fixed + self.sigma * noise)
        if self.samples == 1:
            noise, z = noise[None], z[None]
        mean = z.mean(0)
        if not may_be_differentiated(scores):
            return mean.to(structure._result_dtype(scores))
        allowed = structure.allowed(fixed)
        if self.samples == 1:
            centred = z - structure.argmax(fixed)
        else:
            centred = (z - mean) * (self.samples / (self.samples - 1))

        def rule(gamma: Tensor) -> Tensor:
            gamma = torch.where(allowed, gamma, 0.0)
            inner = (centred * gamma).sum(event_dims(structure), keepdim=True)
            score = self.noise.score(noise)  # type: ignore[attr-defined]
            return torch.where(allowed, (score * inner).mean(0) / self.sigma, 0.0)

        return linear(scores, mean.to(structure._result_dtype(scores)), rule)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)
