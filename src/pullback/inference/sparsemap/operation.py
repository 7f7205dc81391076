"""SparseMAP by an oracle, as operations of a family."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.family import backend_of
from pullback.inference.operations import Kept, Operation


def active_set_capacity(n: int, backend: str = "cpu") -> int:
    """For how many trees a sentence's active set has room: one more than the dimension of their affine hull, which is
    what SparseMAP can need; on a GPU, where that would take gigabytes for long sentences, 2048 at most.
    """
    most = n * (n - 1) + 1
    return torch.sym_min(most + 1, 2048) if backend == "cuda" else most


def _shapes(scores: Tensor, *rest: object) -> tuple[Tensor, ...]:
    batch, n = scores.shape[0], scores.shape[-1]
    capacity = active_set_capacity(n, backend_of(scores))
    return (
        scores.new_empty(scores.shape),
        scores.new_empty((batch, capacity, n), dtype=torch.int16),
        scores.new_empty((batch, capacity), dtype=torch.float64),
        scores.new_empty(batch, dtype=torch.int32),
        scores.new_empty(batch, dtype=torch.float64),
        scores.new_empty(batch, dtype=torch.int32),
        scores.new_empty(batch, dtype=torch.bool),
    )


def _product(kept: Kept, direction: Tensor) -> Tensor:
    heads, used, *sizes = kept.tensors
    return kept.family.sparsemap_vjp(heads, used, *sizes, direction, *kept.options)


SPARSEMAP = (
    Operation(
        "sparsemap",
        after=("start_heads", "start_weights"),
        numbers={"max_iterations": "int", "complete": "bool"},
        outputs="(Tensor mu, Tensor heads, Tensor weights, Tensor used, Tensor gap, Tensor calls, Tensor converged)",
        shapes=_shapes,
        keep=lambda inputs, output: (output[1], output[3], *inputs[1:-2]),
        product=_product,
    ),
    Operation(
        "sparsemap_vjp",
        before=("heads", "used"),
        after=("direction",),
        shapes=lambda heads, used, lengths, direction, *static: direction.new_empty(direction.shape),
        refuses="the second derivative of sparsemap is not available: differentiate once (drop create_graph=True)",
    ),
)
