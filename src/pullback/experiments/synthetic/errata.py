"""Gradients with an error of the paper's released code, to see whether it explains a number. Not for use."""

from __future__ import annotations

from torch import Tensor

from pullback.estimators.base import Layer
from pullback.structures import Structure


class DiagonalStraightThrough(Layer):
    """STE-S with the diagonal of the softmax Jacobian only.

    z = argmax(s),    gradient p * (1 - p) * gamma   where   diag(p) - p p'  is right
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        p = structure.marginals(scores.detach())
        return structure.argmax(scores) + p * (1 - p) * (scores - scores.detach())

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)
