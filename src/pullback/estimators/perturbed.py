"""Perturbations: inference on scores with noise on each part."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from pullback.estimators.base import Layer
from pullback.estimators.checks import positive
from pullback.estimators.straight_through import through_marginals
from pullback.structures import Structure

Noise = Callable[[Tensor], Tensor]
"""From scores to noise of their shape, dtype and device."""


def gumbel(scores: Tensor) -> Tensor:
    """Standard Gumbel noise, independent for each part, of the shape of the scores."""
    wide = torch.promote_types(scores.dtype, torch.float32)
    exponential = torch.empty_like(scores, dtype=wide).exponential_()
    return -exponential.clamp_min(torch.finfo(wide).tiny).log().to(scores.dtype)


class PerturbedMarginals(Layer):
    """Gumbel-Softmax, for any structure: the marginals of perturbed scores.

        z = Marg((s + g) / T),  g ~ Gumbel(0, 1) on each part,    gradient J_Marg((s + g) / T)' gamma / T

    At evaluation there is no noise: Marg(s / T).

    Args:
        temperature: T > 0; the relaxation tends to the argmax of s + g as T tends to 0.
        noise: from scores to noise of their shape, instead of standard Gumbel noise.
    """

    _unlisted: ClassVar[frozenset[str]] = frozenset({"noise"})

    def __init__(self, temperature: float = 1.0, *, noise: Noise = gumbel) -> None:
        self.temperature = positive(self, "temperature", temperature)
        self.noise = noise

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.marginals((scores + self.noise(scores.detach())) / self.temperature)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.marginals(scores / self.temperature)


class PerturbAndMAP(Layer):
    """ST-Gumbel, or Perturb-and-MAP when structured: the argmax of perturbed scores.

        z = argmax((s + g) / T),  g ~ Gumbel(0, 1) on each part,    gradient J_Marg((s + g) / T)' gamma / T

    For a categorical z is an exact sample of p(z) proportional to exp(<s, z>). At evaluation there is no
    noise: argmax(s).

    Args:
        temperature: T > 0, of the marginals in the backward pass; the argmax does not depend on it.
        noise: from scores to noise of their shape, instead of standard Gumbel noise.
    """

    _unlisted: ClassVar[frozenset[str]] = frozenset({"noise"})

    def __init__(self, temperature: float = 1.0, *, noise: Noise = gumbel) -> None:
        self.temperature = positive(self, "temperature", temperature)
        self.noise = noise

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        return through_marginals(structure, (scores + self.noise(scores.detach())) / self.temperature)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)
