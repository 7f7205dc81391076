"""The rows of the synthetic table: baselines, every estimator of the registry, one of our own, errors of the released code.

The errata show whether an error of the paper's released code explains a number. They are not for use.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pullback import Downstream, ScoreFunction, STEMarginals
from pullback.parts import MovingAverage
from pullback.structures import Structure, StructureWrapper
from pullback_study.tasks import Method, by_name, registered


class DiagonalStraightThrough(STEMarginals):
    """STE-S with the diagonal of the softmax Jacobian only.

    z = argmax(s),    gradient p * (1 - p) * gamma   where   diag(p) - p p'  is right
    """

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        p = structure.marginals(scores.detach())
        return structure.argmax(scores) + p * (1 - p) * (scores - scores.detach())


class UnnormalisedScoreFunction(ScoreFunction):
    """SFE without the log-partition in log p(z).

    z ~ p(z),    gradient (L(z) - b) * z   where   (L(z) - b) * (z - p)  is right
    """

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        return super().objective(_NoMarginals(structure), scores, downstream)


class _NoMarginals(StructureWrapper):
    def marginals(self, scores: Tensor) -> Tensor:
        return torch.zeros_like(scores)


def unnormalised_with_moving_average(groups: int = 1) -> UnnormalisedScoreFunction:
    return UnnormalisedScoreFunction(MovingAverage(factor=0.05, groups=groups))


METHODS = by_name(
    Method("linear", "Linear model", "Baselines", defaults={"learning_rate": 0.001}),
    Method("gold", "Gold cluster labels", "Baselines", defaults={"learning_rate": 0.001}),
    *registered("synthetic", categorical=True),
    Method("ste-s-diagonal", "STE-S, diagonal", "Erratum", DiagonalStraightThrough, defaults={"learning_rate": 0.002}),
    Method("sfe-no-partition", "SFE, no log Z", "Erratum", UnnormalisedScoreFunction, stochastic=True),
    Method("sfe-baseline-no-partition", "SFE b., no log Z", "Erratum", unnormalised_with_moving_average, stochastic=True),
)
