"""Relaxations: the decoder sees an average structure, and the gradient is exact."""

from __future__ import annotations

from torch import Tensor

from pullback.estimators.base import Layer
from pullback.structures import Structure


class Marginals(Layer):
    """Softmax, or marginals when structured: the mean structure under p(z) proportional to exp(<s, z>).

        z = Marg(s) = argmax over mu in M of <s, mu> + H(mu),    gradient J_Marg(s)' gamma

    >>> import torch
    >>> from pullback import Categorical
    >>> Marginals()(Categorical(), torch.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.marginals(scores)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.marginals(scores)


class SparseMAP(Layer):
    """Sparsemax, or SparseMAP when structured: a sparse average of structures.

        z = argmin over mu in M of ||mu - s||^2,    gradient J_SparseMAP(s)' gamma

    >>> import torch
    >>> from pullback import Categorical
    >>> SparseMAP()(Categorical(), torch.tensor([[1.0, 0.5, -2.0]]))
    tensor([[0.7500, 0.2500, 0.0000]])
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.sparsemap(scores)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.sparsemap(scores)
