"""SparseMAP of dependency trees on a GPU: the whole search of a sentence in one program, no synchronisation with the host.

Most active sets are small, and their inverses stay close to where they are used. A sentence that needs more room goes on in
a second launch, and in a third, which have nothing to do for the others. A sentence that needs more trees than fit there
keeps the best mean of trees so far; its gap and `converged` say so.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.sparsemap import cuda_active_set, cuda_projector, cuda_solve
from pullback.inference.sparsemap.operation import active_set_capacity
from pullback.inference.sparsemap.solution import NotConverged, not_converged
from pullback.inference.trees import TREES
from pullback.inference.triton_support import contiguous, launch, next_power_of_2, program_count

_ROOMS = (128, 512)  # how many trees fit into the inverse in the first launch, and in the second
_TILE = 2048  # scores looked at together
_SHORT = 31  # words: with the root, the lanes of a warp
_CONVERGED, _FULL, _INFEASIBLE = 0, 2, 3  # as cuda_search.py has them
_ANY_ORACLE, _SHORT_ORACLE, _LONG_ORACLE = 0, 1, 2


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
    batch, n, _ = scores.shape
    capacity = active_set_capacity(n, "cuda")
    mu = torch.empty_like(scores, memory_format=torch.contiguous_format)
    heads = scores.new_empty((batch, capacity, n), dtype=torch.int16)
    weights = scores.new_empty((batch, capacity), dtype=torch.float64)
    sizes, calls, states = (scores.new_empty(batch, dtype=torch.int32) for _ in range(3))
    gap = scores.new_empty(batch, dtype=torch.float64)
    if n == 0:
        for x, value in ((weights, 1.0), (sizes, 1), (calls, 0), (states, _CONVERGED), (gap, 0.0)):
            x.fill_(value)
    tensors = [contiguous(x) for x in (scores, lengths, start_heads, start_weights)]
    results = mu, heads, weights, sizes, gap, calls, states
    oracle = _ANY_ORACLE if not projective else _SHORT_ORACLE if n <= _SHORT else _LONG_ORACLE
    for again, room in enumerate(_rooms(n, start_heads.shape[1]) if scores.numel() > 0 else []):
        programs, *scratch = _scratch(scores, room, oracle)
        numbers = batch, n, capacity, start_heads.shape[1], max_iterations, int(multiroot), again
        # an oracle for short sentences is faster with fewer warps, large inverses with more
        shape = _shape(n, room, 4 if oracle == _SHORT_ORACLE and room <= _ROOMS[0] else 8)
        shape |= {"COMPLETE": int(complete), "ORACLE": oracle, "POSITIONS": max(16, next_power_of_2(n + 1))}
        shape["LEVELS"] = shape["COLUMNS"].bit_length() - 1
        launch(cuda_solve.solve, programs, scores.device, *tensors, *results, *scratch, *numbers, **shape)
    converged = states == _CONVERGED
    if validate:
        _check(scores, lengths, states, gap, max_iterations)
    return mu, heads, weights, sizes, gap, calls, converged


def sparsemap_vjp(
    heads: Tensor, sizes: Tensor, lengths: Tensor, direction: Tensor, validate: bool
) -> Tensor:
    batch, capacity, n = heads.shape
    out = torch.zeros_like(direction, memory_format=torch.contiguous_format)
    smaller = -1
    for room in _rooms(n) if direction.numel() > 0 else []:
        inverse = _inverse_size(room)
        programs = program_count(batch, 8 * inverse + 4 * room * n)
        inverses = direction.new_empty((programs, inverse), dtype=torch.float64)
        trees = direction.new_empty((2, programs, room, n), dtype=torch.int16)
        inputs = map(contiguous, (heads, sizes, lengths, direction))
        tensors = *inputs, out, inverses, *trees
        numbers = batch, n, capacity, smaller
        launch(cuda_projector.apply, programs, direction.device, *tensors, *numbers, **_shape(n, room, 8))
        smaller = room
    return out


def _scratch(scores: Tensor, room: int, oracle: int) -> tuple[Any, ...]:
    """How many programs to run, and what `solve` needs for each of them."""
    n = scores.shape[-1]
    chart = 1 if oracle == _SHORT_ORACLE else 4 * (n + 1) ** 2
    kinds = (
        (_inverse_size(room), torch.float64),
        (3 * n * n, torch.float64),
        (n * room, torch.int16),
        (n, torch.int16),
        (2 * (n + 1), torch.int32),
        (3 * (n + 1) ** 2, torch.int16),
        (n * n + chart, torch.float32),
        (chart, torch.float64),
    )
    programs = program_count(len(scores), sum(size * dtype.itemsize for size, dtype in kinds))
    return programs, *(scores.new_empty((programs, size), dtype=dtype) for size, dtype in kinds), chart


def _pending(room: int) -> int:
    """How many changes of an inverse come together: small ones stay in the cache, where they are fast to write."""
    return 1 if room <= _ROOMS[0] else 8


def _inverse_size(room: int) -> int:
    """How many numbers an inverse has, with what follows it (see cuda_active_set.py)."""
    return room * (room + cuda_active_set.LINES + _pending(room))


def _rooms(n: int, starts: int = 0) -> list[int]:
    """For how many trees each launch has room, so that those to start from fit into the first."""
    most = max(next_power_of_2(active_set_capacity(n, "cuda")), _ROOMS[0])
    return [*(room for room in _ROOMS if starts <= room < most), most]


def _shape(n: int, room: int, warps: int) -> dict[str, int]:
    columns = max(16, next_power_of_2(n))
    rows = min(max(_TILE // columns, 1), columns)
    sizes = {"ROWS": rows, "COLUMNS": columns, "CAPACITY": room, "PENDING": _pending(room)}
    return {**sizes, "num_warps": warps, "num_stages": 1}


def _check(scores: Tensor, lengths: Tensor, states: Tensor, gap: Tensor, limit: int) -> None:
    """Raise for the first sentence with trouble, and warn of those that have not converged: this waits for the device."""
    status = TREES.layout.status(scores, (lengths,))
    infeasible = (states == _INFEASIBLE) & (status == checks.OK)
    checks.raise_for(torch.where(infeasible, checks.INFEASIBLE, status))
    full, stopped = states == _FULL, (states != _CONVERGED) & (states != _FULL)
    if full.any():
        most = active_set_capacity(scores.shape[-1], "cuda")
        warnings.warn(
            f"SparseMAP on a GPU keeps {most} trees a sentence at most; {int(full.sum())} of {len(full)} examples need "
            f"more (largest duality gap {float(gap[full].max()):.1e}); pass scores.cpu()",
            NotConverged,
            stacklevel=3,
        )
    if stopped.any():
        warnings.warn(not_converged(limit, ~stopped, gap), NotConverged, stacklevel=3)
