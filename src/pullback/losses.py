"""Supervised losses: one value per example from scores and a gold structure, called as `loss(structure, scores, target=z)`.

The Fenchel-Young losses also are the intermediate losses of `pullback.PulledBack`, which learns from a pulled-back label, not a
gold one.
"""

from pullback.estimators.hinge import Hinge, hamming
from pullback.estimators.losses import Cost, CrossEntropy, FenchelYoungLoss, Loss, Perceptron, SparseMAPLoss
from pullback.estimators.perturbed_loss import PerturbedLoss
from pullback.estimators.spo_plus import SPOPlus

__all__ = [
    "Cost",
    "CrossEntropy",
    "FenchelYoungLoss",
    "Hinge",
    "Loss",
    "Perceptron",
    "PerturbedLoss",
    "SPOPlus",
    "SparseMAPLoss",
    "hamming",
]
