"""Perturbations: inference on scores with noise on each part."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from pullback.estimators.base import Layer
from pullback.estimators.checks import positive
from pullback.estimators.noise import Gumbel, Noise, drawn, noise_or_gumbel
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.inference.front.layout import working
from pullback.structures import Structure


class Perturbed(Layer):
    """Inference on (s + g) / T, with g drawn anew in each call."""

    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}

    def __init__(self, temperature: float = 1.0, noise: Noise | None = None) -> None:
        self.temperature = positive(self, "temperature", temperature)
        self.noise = noise_or_gumbel(noise)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        wide = working(scores)  # half precision, which noise and temperature may leave, becomes float32
        perturbed = (wide + drawn(self.noise, wide)) / self.temperature
        return self._layer(structure, perturbed).to(structure._result_dtype(scores))

    @abc.abstractmethod
    def _layer(self, structure: Structure, perturbed: Tensor) -> Tensor:
        """Returns the input of the decoder, given (s + g) / T."""


class PerturbedMarginals(Perturbed):
    """Gumbel-Softmax, for any structure: the marginals of perturbed scores.

        z = Marg((s + g) / T),  g noise on each part,    gradient J_Marg((s + g) / T)' gamma / T

    At evaluation there is no noise: Marg(s / T).

    Args:
        temperature: T > 0; the relaxation tends to the argmax of s + g as T tends to 0.
        noise: from scores to noise of their shape; None is `Gumbel()`.
    """

    def _layer(self, structure: Structure, perturbed: Tensor) -> Tensor:
        return structure.marginals(perturbed)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.marginals(working(scores) / self.temperature).to(structure._result_dtype(scores))


class PerturbedSparseMAP(Perturbed):
    """The sparse counterpart of Gumbel-Softmax: SparseMAP of perturbed scores.

        z = SparseMAP((s + g) / T),  g noise on each part,    gradient J_SparseMAP((s + g) / T)' gamma / T

    At evaluation there is no noise: SparseMAP(s / T). It needs only an `argmax` of the structure.

    Args:
        temperature: T > 0; the relaxation tends to the argmax of s + g as T tends to 0.
        noise: from scores to noise of their shape; None is `Gumbel()`.
    """

    def _layer(self, structure: Structure, perturbed: Tensor) -> Tensor:
        return structure.sparsemap(perturbed)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.sparsemap(working(scores) / self.temperature).to(structure._result_dtype(scores))


class PerturbAndMAP(Perturbed):
    """ST-Gumbel, or Perturb-and-MAP when structured: the argmax of perturbed scores.

        z = argmax((s + g) / T),  g noise on each part,    gradient J_Marg((s + g) / T)' gamma / T

    For a categorical z is an exact sample of p(z) proportional to exp(<s, z>). At evaluation there is no
    noise: argmax(s). A structure without marginals (a matching, or one of your own that only has an `argmax`) uses
    the Jacobian of SparseMAP((s + g) / T) instead.

    Args:
        temperature: T > 0, of the marginals in the backward pass; the argmax does not depend on it.
        noise: from scores to noise of their shape; None is `Gumbel()`.
    """

    def _layer(self, structure: Structure, perturbed: Tensor) -> Tensor:
        z = structure.argmax(perturbed)
        if not may_be_differentiated(perturbed):
            return z
        try:
            mu = structure.marginals(perturbed)
        except NotImplementedError:
            mu = structure.sparsemap(perturbed, warm_start=z)
        return z + (mu - mu.detach())

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)
