"""Intermediate losses: they compare the encoder's prediction with a label for the structure itself.

All are Fenchel-Young losses: for a regulariser R over the marginal polytope M,

    loss(s, mu) = R*(s) + R(mu) - <s, mu>,    gradient prediction(s) - mu,

where R* is the conjugate of R, and prediction(s) its gradient.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import torch
from torch import Tensor

from pullback.estimators.config import Configured
from pullback.estimators.inference import Inference
from pullback.structures import Structure


class Loss(Configured, abc.ABC):
    """A loss between scores and a target in the marginal polytope, whose gradient is prediction(s) - target.

    >>> from pullback import Categorical
    >>> scores = torch.tensor([[1.0, 3.0]], requires_grad=True)
    >>> loss = Perceptron()(Categorical(), scores, target=torch.tensor([[1.0, 0.0]]))
    >>> loss.backward()
    >>> loss, scores.grad
    (tensor([2.], grad_fn=<SubBackward0>), tensor([[-1.,  1.]]))
    """

    predicts: ClassVar[str] = "another"
    """What the prediction is: `argmax` or `marginals`, which a start may share; `another` for anything else."""

    @abc.abstractmethod
    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        """One loss for each structure, `[...]`, the leading dimensions of the scores; differentiable in the scores.

        Args:
            structure: the structure.
            scores: `[..., *parts]`.
            target: structures or averages of structures, of the shape of the scores.
        """

    @abc.abstractmethod
    def prediction(self, inference: Inference) -> Tensor:
        """What the gradient of the loss compares with the target: `[..., *parts]`."""


class Perceptron(Loss):
    """The perceptron loss (R = 0).

        max over z of <s, z> - <s, mu>,    gradient argmax(s) - mu

    It is zero where the target is a best structure, however close the second.
    """

    predicts: ClassVar[str] = "argmax"

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        return structure.score(scores, structure.argmax(scores)) - structure.score(scores, target)

    def prediction(self, inference: Inference) -> Tensor:
        return inference.argmax


class CrossEntropy(Loss):
    """Cross-entropy, the CRF loss when structured (R = -H; without the target's own entropy, a constant).

        log Z(s) - <s, mu>,    gradient Marg(s) - mu

    For a structure, rather than an average of structures, it is -log p(z).
    """

    predicts: ClassVar[str] = "marginals"

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        return -structure.log_prob(scores, target)

    def prediction(self, inference: Inference) -> Tensor:
        return inference.marginals()


class SparseMAPLoss(Loss):
    """The SparseMAP loss, the Euclidean counterpart (R = ||mu||^2 / 2).

        max over m in M of (<s, m> - ||m||^2 / 2) + ||mu||^2 / 2 - <s, mu>,    gradient SparseMAP(s) - mu

    It is zero where the target is the SparseMAP prediction: it has a margin.
    """

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            best = structure.sparsemap(scores)
        dims = tuple(range(-structure.event_dims, 0))
        gain = structure.score(scores, best) - structure.score(scores, target)
        apart = torch.where(structure.allowed(scores), target.square() - best.square(), 0.0)
        return gain + apart.sum(dims) / 2

    def prediction(self, inference: Inference) -> Tensor:
        return inference.structure.sparsemap(inference.scores, warm_start=inference.argmax)
