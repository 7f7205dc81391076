"""Learn through an argmax over structures.

Structures    sets of 0/1 vectors with exact inference: Categorical, DependencyTree, LinearChain, FactoredChain, Subset,
Knapsack, Segmentation, BinaryTree, Alignment, CTC, ShortestPath, Matching; Structure and StructureWrapper to write your own
Estimators    gradients through an argmax: Marginals, SPIGOT, IMLE, ScoreFunction, ...; PulledBack, Surrogate, Layer and
Estimator to write your own
Tools         diagnose (bias and variance of an estimator), warmup (compile kernels ahead of time)
Results       SparseMAPSolution, NotConverged, Diagnosis

pullback.losses    supervised losses
pullback.nn        modules: CRF, StructuredLayer
pullback.parts     what estimators are made of: starts, updates, noises, baselines
pullback.viz       drawings of structures, as text and SVG
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from pullback import losses, parts
from pullback._warmup import warmup
from pullback.estimators import (
    IMLE,
    LPGD,
    SPIGOT,
    SPIGOTCE,
    SPIGOTEG,
    AdaptiveIMLE,
    Blackbox,
    Diagnosis,
    Downstream,
    Entmax,
    Estimator,
    GumbelRao,
    Layer,
    Marginals,
    PerturbAndMAP,
    PerturbedArgmax,
    PerturbedMarginals,
    PerturbedSparseMAP,
    PulledBack,
    ReinMax,
    SampledSTE,
    ScoreFunction,
    SparseExpectation,
    SparseMAP,
    Standardized,
    STEIdentity,
    STEMarginals,
    Surrogate,
    UnusedStructureWarning,
    diagnose,
)
from pullback.inference.sparsemap.solution import NotConverged, SparseMAPSolution
from pullback.structures import (
    CTC,
    Alignment,
    BinaryTree,
    Categorical,
    DependencyTree,
    DynamicProgram,
    FactoredChain,
    GridPath,
    Knapsack,
    LinearChain,
    Matching,
    Segmentation,
    ShortestPath,
    Structure,
    StructureWrapper,
    Subset,
    TopK,
)

if TYPE_CHECKING:  # imported when they are first used
    from pullback import nn as nn
    from pullback import viz as viz

__version__ = "1.0.0"
__all__ = [
    "CTC",
    "IMLE",
    "LPGD",
    "SPIGOT",
    "SPIGOTCE",
    "SPIGOTEG",
    "AdaptiveIMLE",
    "Alignment",
    "BinaryTree",
    "Blackbox",
    "Categorical",
    "DependencyTree",
    "Diagnosis",
    "Downstream",
    "DynamicProgram",
    "Entmax",
    "Estimator",
    "FactoredChain",
    "GridPath",
    "GumbelRao",
    "Knapsack",
    "Layer",
    "LinearChain",
    "Marginals",
    "Matching",
    "NotConverged",
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
    "Segmentation",
    "ShortestPath",
    "SparseExpectation",
    "SparseMAP",
    "SparseMAPSolution",
    "Standardized",
    "Structure",
    "StructureWrapper",
    "Subset",
    "Surrogate",
    "TopK",
    "UnusedStructureWarning",
    "diagnose",
    "losses",
    "parts",
    "warmup",
]


def __getattr__(name: str) -> ModuleType:
    """`pullback.nn` and `pullback.viz`, imported when they are first used."""
    if name in ("nn", "viz"):
        return importlib.import_module(f"pullback.{name}")
    raise AttributeError(f"module 'pullback' has no attribute {name!r}")
