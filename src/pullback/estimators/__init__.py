"""Estimators: how a gradient gets from the downstream loss, through a structure, to the scores."""

from pullback.estimators import diagnostics, registry
from pullback.estimators.adaptive_imle import AdaptiveIMLE
from pullback.estimators.base import Downstream, Estimator, Layer
from pullback.estimators.baselines import Baseline, LeaveOneOut, MovingAverage
from pullback.estimators.blackbox import Blackbox
from pullback.estimators.diagnostics import Diagnosis, diagnose
from pullback.estimators.entmax import Entmax
from pullback.estimators.forward import Surrogate
from pullback.estimators.gumbel_rao import GumbelRao
from pullback.estimators.imle import IMLE
from pullback.estimators.losses import CrossEntropy, Loss, Perceptron, SparseMAPLoss
from pullback.estimators.lpgd import LPGD
from pullback.estimators.mirror_at_zero import MirrorAtZero
from pullback.estimators.named import SPIGOT, SPIGOTCE, SPIGOTEG, STEIdentity
from pullback.estimators.noise import Gumbel, Noise, Normal, SumOfGamma
from pullback.estimators.perturbed import PerturbAndMAP, PerturbedMarginals, PerturbedSparseMAP
from pullback.estimators.perturbed_argmax import PerturbedArgmax
from pullback.estimators.perturbed_loss import PerturbedLoss
from pullback.estimators.proximal import Proximal
from pullback.estimators.pulled_back import PulledBack
from pullback.estimators.relaxed import Marginals, SparseMAP
from pullback.estimators.sampled import ReinMax, SampledSTE
from pullback.estimators.score_function import ScoreFunction
from pullback.estimators.sparse_expectation import SparseExpectation
from pullback.estimators.standardized import Standardized
from pullback.estimators.starts import FromArgmax, FromMarginals, FromPerturbedArgmax, FromSample, FromZero, Start
from pullback.estimators.stateful import Stateful
from pullback.estimators.straight_through import STEMarginals
from pullback.estimators.updates import LocallyProjected, Mirror, Projected, State, Unconstrained, Update

__all__ = [
    "IMLE",
    "LPGD",
    "SPIGOT",
    "SPIGOTCE",
    "SPIGOTEG",
    "AdaptiveIMLE",
    "Baseline",
    "Blackbox",
    "CrossEntropy",
    "Diagnosis",
    "Downstream",
    "Entmax",
    "Estimator",
    "FromArgmax",
    "FromMarginals",
    "FromPerturbedArgmax",
    "FromSample",
    "FromZero",
    "Gumbel",
    "GumbelRao",
    "Layer",
    "LeaveOneOut",
    "LocallyProjected",
    "Loss",
    "Marginals",
    "Mirror",
    "MirrorAtZero",
    "MovingAverage",
    "Noise",
    "Normal",
    "Perceptron",
    "PerturbAndMAP",
    "PerturbedArgmax",
    "PerturbedLoss",
    "PerturbedMarginals",
    "PerturbedSparseMAP",
    "Projected",
    "Proximal",
    "PulledBack",
    "ReinMax",
    "STEIdentity",
    "STEMarginals",
    "SampledSTE",
    "ScoreFunction",
    "SparseExpectation",
    "SparseMAP",
    "SparseMAPLoss",
    "Standardized",
    "Start",
    "State",
    "Stateful",
    "SumOfGamma",
    "Surrogate",
    "Unconstrained",
    "Update",
    "diagnose",
    "diagnostics",
    "registry",
]
