"""Binary trees on a GPU: their hypergraph, level by level."""

from __future__ import annotations

from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.cky.reference import value
from pullback.inference.engine.hypergraph.cuda import operations
from pullback.inference.engine.hypergraph.recursions import graph_of

(
    argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy, entropy_gradient, sample,
) = operations(BINARY_TREE.layout, graph_of(value, BINARY_TREE.layout))  # fmt: skip
