"""Tag sequences on the CPU: their hypergraph, in SIMD lanes."""

from __future__ import annotations

from pullback.inference.chain.derivations import graph
from pullback.inference.chain.family import CHAIN
from pullback.inference.hypergraph.cpu import operations

argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(CHAIN.layout, graph)
