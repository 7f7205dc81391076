"""Estimators: how a gradient gets from the downstream loss, through a structure, to the scores."""

from pullback.estimators.base import Downstream, Estimator, Layer
from pullback.estimators.baselines import Baseline, LeaveOneOut, MovingAverage
from pullback.estimators.losses import CrossEntropy, Loss, Perceptron, SparseMAPLoss
from pullback.estimators.named import SPIGOT, SPIGOTCE, SPIGOTEG, STEIdentity
from pullback.estimators.perturbed import PerturbAndMAP, PerturbedMarginals, gumbel
from pullback.estimators.pulled_back import PulledBack
from pullback.estimators.relaxed import Marginals, SparseMAP
from pullback.estimators.score_function import ScoreFunction
from pullback.estimators.starts import FromArgmax, FromMarginals, FromZero, Start
from pullback.estimators.straight_through import STEMarginals
from pullback.estimators.updates import LocallyProjected, Mirror, Projected, Unconstrained, Update

__all__ = [
    "SPIGOT",
    "SPIGOTCE",
    "SPIGOTEG",
    "Baseline",
    "CrossEntropy",
    "Downstream",
    "Estimator",
    "FromArgmax",
    "FromMarginals",
    "FromZero",
    "Layer",
    "LeaveOneOut",
    "LocallyProjected",
    "Loss",
    "Marginals",
    "Mirror",
    "MovingAverage",
    "Perceptron",
    "PerturbAndMAP",
    "PerturbedMarginals",
    "Projected",
    "PulledBack",
    "STEIdentity",
    "STEMarginals",
    "ScoreFunction",
    "SparseMAP",
    "SparseMAPLoss",
    "Start",
    "Unconstrained",
    "Update",
    "gumbel",
]
