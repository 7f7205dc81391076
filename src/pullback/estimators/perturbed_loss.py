"""The perturbed Fenchel-Young loss (Berthet et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from pullback.estimators.checks import at_least, positive
from pullback.estimators.losses import FenchelYoungLoss
from pullback.estimators.noise import Gumbel, Noise, drawn, noise_or_gumbel
from pullback.estimators.starts import Inference
from pullback.structures import Structure


class PerturbedLoss(FenchelYoungLoss):
    """The perturbed Fenchel-Young loss, by Monte Carlo (without the target's own R, a constant).

        mean over i of max over z of <s + sigma g_i, z>  -  <s, mu>,    gradient mean over i of argmax(s + sigma g_i)
        -  mu

    A smooth loss for structures that have only an `argmax`. One call finds all samples, on `[samples, ...,
    *parts]`.

    Args:
        sigma: > 0, the scale of the noise.
        samples: the number of samples.
        noise: from scores to noise of their shape; None is `Gumbel()`.
    """

    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}

    def __init__(self, sigma: float = 1.0, samples: int = 10, noise: Noise | None = None) -> None:
        self.sigma = positive(self, "sigma", sigma)
        self.samples = at_least(self, "samples", samples, 1)
        self.noise = noise_or_gumbel(noise)

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        noise = self.sigma * drawn(self.noise, scores, self.samples)
        z = structure.argmax(scores + noise)
        losses = structure._gain(scores, z, target) + structure._product(noise, z)
        return losses if self.samples == 1 else losses.mean(0)

    def prediction(self, inference: Inference) -> Tensor:
        scores = inference.scores
        z = inference.structure.argmax(scores + self.sigma * drawn(self.noise, scores, self.samples))
        return z if self.samples == 1 else z.mean(0)
