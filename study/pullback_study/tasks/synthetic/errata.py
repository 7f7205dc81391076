"""Gradients with errors of the paper's released code, to see whether they explain a number. Not for use."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators import Baseline, Downstream, Estimator, Layer, MovingAverage, Stateful
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


class UnnormalisedScoreFunction(Stateful, Estimator):
    """SFE without the log-partition in log p(z), for categoricals.

        z ~ p(z),    gradient (L(z) - b) * z   where   (L(z) - b) * (z - p)  is right

    Args:
        baseline: gives L - b; None for b = 0.
    """

    def __init__(self, baseline: Baseline | None = None) -> None:
        super().__init__()
        self.baseline = baseline

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        z = structure.sample(scores.detach())
        losses = downstream(z)
        with torch.no_grad():
            rewards = losses.detach()
            advantages = rewards if self.baseline is None else self.baseline.advantages(rewards[None])[0]
        return losses + ((scores - scores.detach()) * advantages[:, None] * z).sum(-1)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        raise TypeError("use objective(structure, scores, downstream)")

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


def unnormalised_with_moving_average(groups: int = 1) -> UnnormalisedScoreFunction:
    return UnnormalisedScoreFunction(MovingAverage(factor=0.05, groups=groups))
