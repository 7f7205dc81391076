"""Binary trees in plain PyTorch."""

from __future__ import annotations

from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.cky.rules import RECURSION
from pullback.inference.engine.recursion import operations
from pullback.inference.engine.rules.reference import reference

value = reference(RECURSION)
argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, BINARY_TREE.layout)
