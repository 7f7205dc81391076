"""Hypergraphs of the recursions that structures state in plain PyTorch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.inference.engine.hypergraph.building import trace
from pullback.inference.engine.hypergraph.graph import Hypergraph
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.front.layout import Layout


@functools.cache
def graph_of(value: Callable[..., Tensor], layout: Layout) -> Callable[..., Hypergraph]:
    """From the shape of the parts and the options to the hypergraph of a `recursion.Value`: a goal for each size."""
    named = inspect.signature(value).parameters

    @remembered
    def graph(shape: tuple[int, ...], **options: Any) -> Hypergraph:
        given = {name: option for name, option in options.items() if name in named}
        limits = [layout.limit(i, torch.Size((1, *shape))) for i in range(len(layout.sizes))]
        counts = [1 + (shape[0] if limit is None else limit) for limit in limits]
        sizes = [size.flatten() for size in torch.meshgrid(*map(torch.arange, counts), indexing="ij")]

        def recursion(scores: Tensor, combine: Callable[[Tensor, int], Tensor]) -> Tensor:
            return value(scores, *sizes, combine=combine, **given)

        graph, _ = trace(recursion, shape, layout.owner)
        return graph.with_goals(graph.goals.reshape(counts))

    return graph
