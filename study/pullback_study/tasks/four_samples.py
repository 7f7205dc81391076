"""Estimators with as many samples as the control variate has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback_study.tasks.task import Method

if TYPE_CHECKING:
    from pullback.estimators import Estimator


def _leave_one_out_4() -> Estimator:
    from pullback.estimators import ScoreFunction
    from pullback.parts import LeaveOneOut

    return ScoreFunction(LeaveOneOut(4))


def _reinmax_4() -> Estimator:
    from pullback.estimators import ReinMax

    return ReinMax(4)


FOUR_SAMPLES = (
    Method("sfe-leave-one-out-4", "SFE, leave-one-out, 4 samples", "Argmax", _leave_one_out_4, stochastic=True),
    Method("reinmax-4", "ReinMax, 4 samples", "Argmax", _reinmax_4, stochastic=True),
)
