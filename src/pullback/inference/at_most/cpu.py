"""Subsets of at most k items on the CPU: the hypergraph of a knapsack whose items cost 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.inference.at_most.reference import largest, unit_costs
from pullback.inference.engine.hypergraph.cpu import operations
from pullback.inference.knapsack.derivations import graph
from pullback.inference.subset.family import SUBSET


def _of_unit_costs(operation: Callable[..., Any]) -> Callable[..., Any]:
    def run(scores: Tensor, lengths: Tensor, k: Tensor, *rest: Tensor, most: int, validate: bool) -> Any:
        most = largest(scores, k, most)
        options = {"costs": unit_costs(scores.shape[1]), "most": most}
        return operation(scores, lengths, torch.clamp_max(k, most), *rest, **options, validate=validate)

    return run


_, log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient, sample = map(
    _of_unit_costs, operations(SUBSET.layout, graph)
)
