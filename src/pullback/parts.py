"""The parts that estimators are made of.

Starts      Start, FromArgmax, FromMarginals, FromZero, FromSample, FromPerturbedArgmax
Updates     Update, Unconstrained, Projected, LocallyProjected, Mirror, MirrorAtZero, Proximal, and their InnerState
Noises      Noise, Gumbel, Normal, SumOfGamma
Baselines   Baseline, MovingAverage, LeaveOneOut, SelfCritical, ControlVariate
"""

from pullback.estimators.baselines import Baseline, ControlVariate, LeaveOneOut, MovingAverage, SelfCritical
from pullback.estimators.mirror_at_zero import MirrorAtZero
from pullback.estimators.noise import Gumbel, Noise, Normal, SumOfGamma
from pullback.estimators.proximal import Proximal
from pullback.estimators.starts import FromArgmax, FromMarginals, FromPerturbedArgmax, FromSample, FromZero, Start
from pullback.estimators.updates import InnerState, LocallyProjected, Mirror, Projected, Unconstrained, Update

__all__ = [
    "Baseline",
    "ControlVariate",
    "FromArgmax",
    "FromMarginals",
    "FromPerturbedArgmax",
    "FromSample",
    "FromZero",
    "Gumbel",
    "InnerState",
    "LeaveOneOut",
    "LocallyProjected",
    "Mirror",
    "MirrorAtZero",
    "MovingAverage",
    "Noise",
    "Normal",
    "Projected",
    "Proximal",
    "SelfCritical",
    "Start",
    "SumOfGamma",
    "Unconstrained",
    "Update",
]
