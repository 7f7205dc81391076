"""The functions of a family whose recursion is a hypergraph on every device, instead of those of a folder."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pullback.inference.engine import recursion
from pullback.inference.engine.hypergraph import ranked
from pullback.inference.engine.hypergraph.graph import Hypergraph
from pullback.inference.front.layout import Layout

_NAMES = (
    "argmax", "log_partition", "marginals", "log_partition_marginals", "marginals_vjp", "entropy", "entropy_gradient", "sample",
)  # fmt: skip


def functions(
    backend: str, layout: Layout, graph: Callable[..., Hypergraph], value: recursion.Value, most_parts: Callable[..., int]
) -> Any:
    """The functions of a backend, or SparseMAP's oracle; None for other names.

    Args:
        backend: its name, or "oracle".
        layout: of the scores.
        graph: from the shape of the parts and the options to the hypergraph.
        value: the recursion in PyTorch.
        most_parts: from the shape of the parts and the options to the largest number of parts of one structure.
    """
    found: tuple[Callable[..., Any], ...]
    names = list(_NAMES)
    if backend == "oracle":
        from pullback.inference.engine.hypergraph.oracle import HypergraphOracle

        return SimpleNamespace(ORACLE=HypergraphOracle(graph))
    if backend == "reference":
        names.remove("log_partition_marginals")
        found = recursion.operations(value, layout)
    elif backend == "cpu":
        from pullback.inference.engine.hypergraph import cpu

        found = cpu.operations(layout, graph)
    elif backend != "cuda":
        return None
    else:
        from pullback.inference.engine.hypergraph import cuda

        names.insert(4, "log_prob")
        found = cuda.operations(layout, graph)
    topk = ranked.operation(layout, graph, backend, most_parts)
    return SimpleNamespace(**dict(zip(names, found, strict=True)), topk=topk)
