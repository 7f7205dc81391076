"""Tag sequences on a GPU: their hypergraph, level by level."""

from __future__ import annotations

from pullback.inference.chain.derivations import graph
from pullback.inference.chain.family import CHAIN
from pullback.inference.hypergraph.cuda import operations

(
    argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy, entropy_gradient, sample,
) = operations(CHAIN.layout, graph)  # fmt: skip
