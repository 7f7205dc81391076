"""CTC on the engine of hypergraphs: one table for the states of all targets.

Its parts are `[T, 3 S + 1]`: the 2 S + 1 states of a target at each frame, and again its S symbols where the blank before is
skipped, whose scores are -inf where two neighbours are equal. So the hypergraph does not depend on the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.ctc import reference
from pullback.inference.engine.hypergraph import cpu, cuda
from pullback.inference.engine.hypergraph.building import trace
from pullback.inference.engine.hypergraph.graph import Hypergraph
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.engine.recursion import Combine
from pullback.inference.front.layout import Layout, Size

_LAYOUT = Layout("CTC", "T, P", sizes=(Size("lengths", bounds="T"),))
_NAMES = (
    "argmax", "log_partition", "marginals", "log_partition_marginals", "marginals_vjp", "entropy", "entropy_gradient", "sample",
)  # fmt: skip


def _value(parts: Tensor, combine: Combine) -> Tensor:
    symbols = (parts.shape[2] - 1) // 3
    states, nothing = 2 * symbols + 1, parts.new_full((len(parts), 1), -torch.inf)
    line = torch.cat([parts.new_zeros(len(parts), 1), nothing.expand(-1, states - 1)], 1)
    for t in range(parts.shape[1]):
        own, skip = parts[:, t, :states], nothing.expand(-1, states).clone()
        skip[:, 3::2] = parts[:, t, states + 1 :] + line[:, 1:-2:2]
        before = torch.cat([nothing, line[:, :-1]], 1)
        line = combine(torch.stack([line + own, before + own, skip], 1), 1)
    return combine(line[:, -2:], 1)


@remembered
def _graph(shape: tuple[int, ...]) -> Hypergraph:
    graph, _ = trace(_value, shape, "CTC")
    return graph.with_goals(np.append(np.full(shape[0], -1), graph.goals))  # of the whole length alone


def operations(backend: str) -> dict[str, Callable[..., Any]]:
    """The functions of CTC's family, for batches without padding."""
    if backend == "reference":
        return {name: getattr(reference, name) for name in (*_NAMES, "topk") if hasattr(reference, name)}
    engine = dict(zip(_NAMES, cpu.operations(_LAYOUT, _graph), strict=True)) if backend == "cpu" else {}
    if backend == "cuda":
        names = [*_NAMES[:4], "log_prob", *_NAMES[4:]]
        engine = dict(zip(names, cuda.operations(_LAYOUT, _graph), strict=True))
    return {name: _on_states(name, operation) for name, operation in engine.items()}


def _on_states(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    def run(scores: Tensor, lengths: Tensor, *rest: Tensor, blank: int, validate: bool) -> Any:
        target_lengths, targets, *given = rest
        parts, symbols = _parts(scores, target_lengths, targets, blank, skips=True)
        if name == "marginals_vjp":
            given = [_parts(given[0], target_lengths, targets, blank, skips=False)[0]]
        found = operation(parts, lengths, *given, validate=validate)
        if isinstance(found, tuple):
            return found[0], _of_symbols(found[1], symbols, scores.shape)
        return found if found.dim() == 1 else _of_symbols(found, symbols, scores.shape)

    return run


def _parts(scores: Tensor, lengths: Tensor, targets: Tensor, blank: int, *, skips: bool) -> tuple[Tensor, Tensor]:
    emissions, allowed, symbols = reference._states(scores.detach(), lengths, targets, blank)
    again = emissions[:, :, 1::2] + allowed[:, None, 1::2] if skips else emissions[:, :, 1::2]
    return torch.cat([emissions, again], 2), torch.cat([symbols, symbols[:, 1::2]], 1)


def _of_symbols(parts: Tensor, symbols: Tensor, shape: torch.Size) -> Tensor:
    return parts.new_zeros(shape).scatter_add_(2, symbols[:, None].expand(-1, shape[1], -1), parts)
