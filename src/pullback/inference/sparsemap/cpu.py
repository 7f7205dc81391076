"""SparseMAP of dependency trees on the CPU: the active-set method, compiled, over threads."""

from __future__ import annotations

import warnings
from collections import namedtuple

import numpy as np
import torch
from torch import Tensor

from pullback.inference.eisner.batch import Batch
from pullback.inference.sparsemap import nonprojective, projector
from pullback.inference.sparsemap import projective as projective_trees
from pullback.inference.sparsemap.operation import active_set_capacity
from pullback.inference.sparsemap.solution import NotConverged, not_converged
from pullback.inference.threads import spread

_SWEEPS = 10  # over the splits of a sentence, of half a nanosecond each, about

Result = namedtuple("Result", ["mu", "heads", "weights", "sizes", "gap", "calls", "converged"])


def sparsemap(
    scores: Tensor,
    lengths: Tensor,
    start_heads: Tensor,
    start_weights: Tensor,
    max_iterations: int,
    complete: bool,
    projective: bool,
    multiroot: bool,
    validate: bool,
) -> tuple[Tensor, ...]:
    batch = Batch(scores.double(), lengths.contiguous())
    result = _allocate(batch.scores)
    arrays = Result(*(tensor.numpy() for tensor in result))
    starts = start_heads.contiguous().numpy(), start_weights.contiguous().numpy()
    kernel = projective_trees.solve if projective else nonprojective.solve
    spread(
        kernel, len(scores), _SWEEPS * batch.cubes, np.zeros(1, np.int64), *batch.arrays,
        multiroot, max_iterations, starts, complete, arrays, batch.status,
    )  # fmt: skip
    batch.settle(result.mu, validate)
    if not result.converged.all():
        warnings.warn(not_converged(max_iterations, result.converged, result.gap), NotConverged, stacklevel=2)
    return result.mu.to(scores.dtype), *result[1:]


def sparsemap_vjp(
    heads: Tensor, sizes: Tensor, lengths: Tensor, direction: Tensor, validate: bool
) -> Tensor:
    result = torch.zeros(direction.shape, dtype=torch.float64)
    tensors = *(tensor.contiguous() for tensor in (heads, sizes, lengths, direction.double())), result
    if len(sizes):
        work = float((sizes.double() ** 3).sum())
        spread(projector.apply, len(sizes), work, *(tensor.numpy() for tensor in tensors))
    return result.to(direction.dtype)


def _allocate(scores: Tensor) -> Result:
    """Room for the result; of the active set, which is as large as the worst case, only what is used is touched."""
    batch, n = scores.shape[0], scores.shape[-1]
    capacity = active_set_capacity(n)
    return Result(
        torch.zeros_like(scores),
        torch.empty((batch, capacity, n), dtype=torch.int16),
        torch.empty((batch, capacity), dtype=torch.float64),
        torch.zeros(batch, dtype=torch.int32),
        torch.zeros(batch, dtype=torch.float64),
        torch.zeros(batch, dtype=torch.int32),
        torch.ones(batch, dtype=torch.bool),
    )
