"""Straight-through with the marginals' backward pass."""

from __future__ import annotations

from torch import Tensor

from pullback.estimators.base import Layer
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.structures import Structure


class STEMarginals(Layer):
    """STE-S, or STE-Marginals when structured: argmax forward, the marginals' Jacobian backward.

        z = argmax(s),    gradient J_Marg(s)' gamma

    The Jacobian is the full one: for a categorical, diag(p) - p p'.

    >>> import torch
    >>> from pullback import Categorical
    >>> STEMarginals()(Categorical(), torch.tensor([[1.0, 0.5, -2.0]]))
    tensor([[1., 0., 0.]])
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        return through_marginals(structure, scores)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


def through_marginals(structure: Structure, scores: Tensor) -> Tensor:
    """The argmax of the scores, with the gradient of their marginals."""
    z = structure.argmax(scores)
    if not may_be_differentiated(scores):
        return z
    mu = structure.marginals(scores)
    return z + (mu - mu.detach())
