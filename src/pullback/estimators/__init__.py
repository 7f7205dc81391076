"""Estimators: how a gradient gets from the downstream loss, through a structure, to the scores."""

from pullback.estimators import diagnostics, registry
from pullback.estimators.adaptive_imle import AdaptiveIMLE
from pullback.estimators.base import Downstream, Estimator, Layer
from pullback.estimators.blackbox import Blackbox
from pullback.estimators.checks import UnusedStructureWarning
from pullback.estimators.diagnostics import Diagnosis, diagnose
from pullback.estimators.entmax import Entmax
from pullback.estimators.forward import Surrogate
from pullback.estimators.gumbel_rao import GumbelRao
from pullback.estimators.imle import IMLE
from pullback.estimators.lpgd import LPGD
from pullback.estimators.perturbed import PerturbAndMAP, PerturbedMarginals, PerturbedSparseMAP
from pullback.estimators.perturbed_argmax import PerturbedArgmax
from pullback.estimators.pulled_back import SPIGOT, SPIGOTCE, SPIGOTEG, PulledBack, STEIdentity
from pullback.estimators.relaxed import Marginals, SparseMAP
from pullback.estimators.sampled import ReinMax, SampledSTE
from pullback.estimators.score_function import ScoreFunction
from pullback.estimators.sparse_expectation import SparseExpectation
from pullback.estimators.standardized import Standardized
from pullback.estimators.straight_through import STEMarginals

__all__ = [
    "IMLE",
    "LPGD",
    "SPIGOT",
    "SPIGOTCE",
    "SPIGOTEG",
    "AdaptiveIMLE",
    "Blackbox",
    "Diagnosis",
    "Downstream",
    "Entmax",
    "Estimator",
    "GumbelRao",
    "Layer",
    "Marginals",
    "PerturbAndMAP",
    "PerturbedArgmax",
    "PerturbedMarginals",
    "PerturbedSparseMAP",
    "PulledBack",
    "ReinMax",
    "STEIdentity",
    "STEMarginals",
    "SampledSTE",
    "ScoreFunction",
    "SparseExpectation",
    "SparseMAP",
    "Standardized",
    "Surrogate",
    "UnusedStructureWarning",
    "diagnose",
    "diagnostics",
    "registry",
]
