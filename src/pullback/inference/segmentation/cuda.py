"""Segmentations on a GPU: their hypergraph, level by level."""

from __future__ import annotations

from pullback.inference.engine.hypergraph.cuda import operations
from pullback.inference.segmentation.family import SEGMENTATION
from pullback.inference.segmentation.reference import graph

(
    argmax, log_partition, marginals, log_partition_marginals, log_prob, marginals_vjp, entropy, entropy_gradient, sample,
) = operations(SEGMENTATION.layout, graph)  # fmt: skip
