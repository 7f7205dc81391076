"""Segmentations on the CPU: their hypergraph, in SIMD lanes."""

from __future__ import annotations

from pullback.inference.engine.hypergraph.cpu import operations
from pullback.inference.segmentation.family import SEGMENTATION
from pullback.inference.segmentation.reference import graph

(
    argmax, log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient, sample,
) = operations(SEGMENTATION.layout, graph)  # fmt: skip
