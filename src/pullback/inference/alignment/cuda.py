"""Monotone alignments on a GPU: their hypergraph, level by level."""

from __future__ import annotations

from pullback.inference.alignment.derivations import graph
from pullback.inference.alignment.family import ALIGNMENT
from pullback.inference.hypergraph.cuda import operations

(
    argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy, entropy_gradient, sample,
) = operations(ALIGNMENT.layout, graph)  # fmt: skip
