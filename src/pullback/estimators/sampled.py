"""Exact samples forward, the marginals' Jacobian backward (SIMPLE: Ahmed et al., 2023; ReinMax: Liu et al., 2023)."""

from __future__ import annotations

import abc

import torch
from torch import Tensor

from pullback.estimators.base import Layer
from pullback.estimators.checks import event_dims
from pullback.estimators.surrogate import linear
from pullback.inference.torch_seam.derivatives import may_be_differentiated
from pullback.structures import Structure


class _Sampled(Layer):
    """An exact sample forward; a surrogate backward that needs the marginals."""

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        z = structure.sample(scores.detach())
        if not may_be_differentiated(scores):
            return z
        return z + self._zero(structure, scores, z, structure.marginals(scores))

    @abc.abstractmethod
    def _zero(self, structure: Structure, scores: Tensor, z: Tensor, mu: Tensor) -> Tensor:
        """Zeros of the shape of z with the surrogate's derivative in the scores; mu is differentiable."""

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


class SampledSTE(_Sampled):
    """SIMPLE, for every structure: an exact sample forward, the marginals' Jacobian backward.

        z ~ p(z) proportional to exp(<s, z>),    gradient J_Marg(s)' gamma(z)

    Unbiased for losses that are linear in z. At evaluation z is the argmax.

    >>> import torch
    >>> from pullback import Categorical
    >>> SampledSTE()(Categorical(), torch.tensor([[1.0, -torch.inf]]))
    tensor([[1., 0.]])
    """

    def _zero(self, structure: Structure, scores: Tensor, z: Tensor, mu: Tensor) -> Tensor:
        return mu - mu.detach()


class ReinMax(_Sampled):
    """ReinMax, for every structure: an exact sample forward, a gradient of second order backward.

        z ~ p(z) proportional to exp(<s, z>),    d = z - Marg(s),
        gradient 1/2 [J_Marg(s)' gamma(z) + d <d, gamma(z)>]

    Unbiased for losses that are quadratic in z. For a categorical it is the published rule, 2 J((p + z) / 2)' gamma -
    J(p)' gamma / 2: J_Marg(s) is the covariance of z, and that of the half-half mixture of p and the point z is J / 2
    + d d' / 4. Each of several structures of one example has its own d. At evaluation z is the argmax.

    >>> import torch
    >>> from pullback import Categorical
    >>> ReinMax()(Categorical(), torch.tensor([[1.0, -torch.inf]]))
    tensor([[1., 0.]])
    """

    def _zero(self, structure: Structure, scores: Tensor, z: Tensor, mu: Tensor) -> Tensor:
        d = z - mu.detach()
        allowed = structure.allowed(scores.detach())

        def along(gamma: Tensor) -> Tensor:
            inner = (d * torch.where(allowed, gamma, 0.0)).sum(event_dims(structure), keepdim=True)
            return torch.where(allowed, d * inner, 0.0) / 2

        return (mu - mu.detach()) / 2 + linear(scores, torch.zeros_like(z), along)
