"""Projective dependency trees in plain PyTorch."""

from __future__ import annotations

from pullback.inference.eisner.rules import RECURSION
from pullback.inference.recursion import operations
from pullback.inference.rules.reference import reference
from pullback.inference.trees import TREES

value = reference(RECURSION)
argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, TREES.layout)
