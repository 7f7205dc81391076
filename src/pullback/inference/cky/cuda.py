"""Binary trees on a GPU: their hypergraph, level by level."""

from __future__ import annotations

from pullback.inference.cky.derivations import graph
from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.hypergraph.cuda import operations

(
    argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy, entropy_gradient, sample,
) = operations(BINARY_TREE.layout, graph)  # fmt: skip
