"""Supervised losses: one value per example from scores and a gold structure, called as `loss(structure, scores, target=z)`.

They also are the intermediate losses of `pullback.PulledBack`, which learns from a pulled-back label instead of a gold one.
"""

from pullback.estimators.losses import CrossEntropy, Loss, Perceptron, SparseMAPLoss
from pullback.estimators.perturbed_loss import PerturbedLoss

__all__ = ["CrossEntropy", "Loss", "Perceptron", "PerturbedLoss", "SparseMAPLoss"]
