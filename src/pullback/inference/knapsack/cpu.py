"""Knapsacks on the CPU: the hypergraph of the costs, where all examples have the same; else the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from pullback.inference.engine.hypergraph.cpu import operations
from pullback.inference.knapsack import reference
from pullback.inference.knapsack.derivations import graph
from pullback.inference.knapsack.family import SAME
from pullback.inference.knapsack.reference import table


def _by_hypergraph(operation: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def run(scores: Tensor, lengths: Tensor, budget: Tensor, costs: Tensor, *rest: Tensor, validate: bool) -> Any:
        if len(costs) == 0 or costs.shape[1] != scores.shape[1] or not bool(((costs == costs[0]) & (costs > 0)).all()):
            return otherwise(scores, lengths, budget, costs, *rest, validate=validate)
        units, options = table(budget, costs[0])
        return operation(scores, lengths, units, *rest, **options, validate=validate)

    return run


def _both(*tensors: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    return reference.log_partition(*tensors, validate=validate), reference.marginals(*tensors, validate=validate)


_REFERENCE = (
    reference.argmax, reference.log_partition, reference.marginals, _both, reference.marginals_vjp, reference.entropy,
    reference.entropy_gradient, reference.sample,
)  # fmt: skip
argmax, log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient, sample = map(
    _by_hypergraph, operations(SAME, graph), _REFERENCE
)
