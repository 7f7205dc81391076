"""Projective dependency trees in plain PyTorch."""

from __future__ import annotations

from pullback.inference.eisner.rules import RECURSION
from pullback.inference.engine.recursion import operations
from pullback.inference.engine.rules.reference import reference
from pullback.inference.trees.family import TREES

value = reference(RECURSION)
argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, TREES.layout)
