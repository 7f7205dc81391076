"""Where the inner steps start: mu^(0), and what the decoder sees in the forward pass."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.estimators.checks import at_least, not_negative
from pullback.estimators.config import Configured
from pullback.estimators.noise import Gumbel, Noise, drawn, noise_or_gumbel
from pullback.structures import Structure


class Inference:
    """A structure and scores without a gradient, with the results that starts and losses share, each made at most once.

    Args:
        structure: the structure.
        scores: `[..., *parts]`.
        z: what the decoder sees in the forward pass.
        is_argmax: whether z is the argmax of the scores.
    """

    def __init__(self, structure: Structure, scores: Tensor, z: Tensor, *, is_argmax: bool = True) -> None:
        self.structure = structure
        self.scores = scores
        self.z = z
        self._argmax = z if is_argmax else None
        self._marginals: Tensor | None = None

    @property
    def argmax(self) -> Tensor:
        """The argmax of the scores."""
        if self._argmax is None:
            self._argmax = self.structure.argmax(self.scores)
        return self._argmax

    def marginals(self) -> Tensor:
        if self._marginals is None:
            self._marginals = self.structure.marginals(self.scores)
        return self._marginals


class Start(Configured, abc.ABC):
    """The first guess of the pulled-back label, mu^(0), and the z of the forward pass, which is argmax(s) by default."""

    is_forward: ClassVar[bool] = False
    """Whether mu^(0) is the z of the forward pass: its gamma then comes with the ordinary backward pass."""
    begins_at: ClassVar[str] = ""
    """The operation on the perturbed scores that gives mu^(0): `argmax` or `marginals`; empty for anything else."""
    samples: int = 1
    """The number of z per example that the decoder sees, with one call of `downstream` each."""

    @abc.abstractmethod
    def mu(self, inference: Inference) -> Tensor:
        """mu^(0), of the shape of the scores."""

    def perturbed(self, scores: Tensor) -> Tensor:
        """The scores that all inference uses, `[B, ..., *parts]`, or `[samples, B, ..., *parts]`; differentiable."""
        return scores if self.samples == 1 else scores.expand(self.samples, *scores.shape)

    def point(self, structure: Structure, scores: Tensor) -> Tensor:
        """The z of the forward pass, from the perturbed scores and of their shape."""
        return structure.argmax(scores)


class FromArgmax(Start):
    """mu^(0) = argmax(s): the start of STE-I, SPIGOT and Blackbox. The first step costs no decoder call."""

    is_forward: ClassVar[bool] = True
    begins_at: ClassVar[str] = "argmax"

    def mu(self, inference: Inference) -> Tensor:
        return inference.z


class FromMarginals(Start):
    """mu^(0) = Marg(s): the start of SPIGOT-CE and SPIGOT-EG."""

    begins_at: ClassVar[str] = "marginals"

    def mu(self, inference: Inference) -> Tensor:
        return inference.marginals()


class FromZero(Start):
    """mu^(0) = 0, outside of the polytope."""

    def mu(self, inference: Inference) -> Tensor:
        return torch.zeros_like(inference.z)


class FromSample(Start):
    """mu^(0) = z ~ p(z) proportional to exp(<s, z>): the decoder sees an exact sample.

    Args:
        samples: the number of samples per example, in one call of `sample`; the gradient is their mean.
    """

    is_forward: ClassVar[bool] = True

    def __init__(self, samples: int = 1) -> None:
        self.samples = at_least(self, "samples", samples, 1)

    def mu(self, inference: Inference) -> Tensor:
        return inference.z

    def point(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.sample(scores)


class FromPerturbedArgmax(Start):
    """mu^(0) = argmax(s + T g): the start of I-MLE.

    The decoder sees it. Prediction, inner steps and label all use the same perturbed scores s + T g.

    Args:
        temperature: T >= 0, the scale of the noise; 0 for none.
        noise: from scores to noise of their shape; None is `Gumbel()`.
        samples: the number of samples per example, in one call of `argmax`; the gradient is their mean.
    """

    is_forward: ClassVar[bool] = True
    begins_at: ClassVar[str] = "argmax"
    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}

    def __init__(self, temperature: float = 1.0, noise: Noise | None = None, samples: int = 1) -> None:
        self.temperature = not_negative(self, "temperature", temperature)
        self.noise = noise_or_gumbel(noise)
        self.samples = at_least(self, "samples", samples, 1)

    def mu(self, inference: Inference) -> Tensor:
        return inference.z

    def perturbed(self, scores: Tensor) -> Tensor:
        if self.temperature == 0:
            return super().perturbed(scores)
        return scores + self.temperature * drawn(self.noise, scores, self.samples)
