"""SparseMAP on a GPU: the whole search of an example in one program, no synchronisation with the host.

Most active sets are small, and so are their workspaces. An example that needs more room goes on in a second launch, which has
nothing to do for the others. An example that needs more structures than fit there keeps the best mean of structures so far;
its gap and `converged` say so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pullback.inference._triton.support import (
    contiguous,
    interpreting,
    launch,
    next_power_of_2,
    program_count,
    unproven,
)
from pullback.inference.eisner import cuda_charts
from pullback.inference.front import checks
from pullback.inference.sparsemap import cuda_long, cuda_projective, cuda_projector, cuda_shared, cuda_solve, cuda_trees
from pullback.inference.sparsemap.cuda_state import workspace
from pullback.inference.sparsemap.operation import active_set_capacity
from pullback.inference.sparsemap.solution import NotConverged, not_converged
from pullback.inference.trees.family import TREES

_ROOM = 256  # how many structures fit into the first launch
_SHORT = 31  # words: with the root, 2^5 positions; a call of the oracle is so fast that a second tree of it does not pay
_SHARED, _MEDIUM = cuda_charts.LONGEST, 63  # words: whose charts fit into shared memory; with the root, 2^6 positions
_FULL, _CONVERGED, _INFEASIBLE = 0, 2, 3  # as cuda_search.py has them


class Oracle(NamedTuple):
    """How a structure's best one is found on a GPU: Triton's functions, see cuda_search.py."""

    rough: Any  # in float32, or None
    another: Any  # finds more after a call of that, or None
    exact: Any  # in float64
    scratch: Callable[[int], int]  # how many float64 they need
    levels: int  # the logarithm of their number of positions
    warps: int
    block: int  # how many structures, or slots, are looked at together

    def constants(self, n: int) -> dict[str, Any]:
        """What the kernel is compiled for. The interpreter takes a step for each element of a tile: it gets small ones."""
        small = interpreting()
        shape = max(_levels(n + 1), 3) if small else self.levels, 8 if small else self.block
        oracles = {"ROUGH": self.rough, "ANOTHER": self.another, "EXACT": self.exact}
        return {**oracles, "SHAPE": shape, "num_warps": self.warps, "num_stages": 1}


def oracle_for(n: int, projective: bool) -> Oracle:
    """The oracle for sentences of n words at most."""
    if not projective:
        return Oracle(None, None, cuda_trees.best_of_all, cuda_trees.scratch_of_all, _levels(max(n, 32)), 8, 256)
    exact, another = cuda_projective.best_projective, cuda_projective.another_projective
    if unproven() and n <= min(_SHORT, _SHARED):
        return Oracle(cuda_shared.best_shared, None, exact, cuda_shared.scratch_of_shared, 5, 4, 128)
    if unproven() and n <= _SHARED:
        return Oracle(cuda_shared.best_shared, cuda_shared.another_shared, exact, cuda_shared.scratch_of_shared, 6, 8, 128)
    if n <= _MEDIUM:
        return Oracle(exact, another, exact, cuda_projective.scratch_of_projective, 6, 4, 128)
    return Oracle(cuda_long.best_long, None, cuda_long.best_long, cuda_long.scratch_of_long, 6, 8, 256)


def sparsemap(
    scores: Tensor,
    lengths: Tensor,
    starts: Tensor,
    start_weights: Tensor,
    max_iterations: int,
    complete: bool,
    tolerance: float,  # on a GPU, searches go on to rounding
    projective: bool,
    multiroot: bool,
    validate: bool,
) -> tuple[Tensor, ...]:
    batch, n, _ = scores.shape
    capacity = active_set_capacity(n)
    mu = torch.zeros_like(scores, memory_format=torch.contiguous_format)
    vertices = scores.new_empty((batch, capacity, n), dtype=torch.int32)
    weights = scores.new_empty((batch, capacity), dtype=torch.float64)
    gap = scores.new_zeros(batch, dtype=torch.float64)
    records = scores.new_zeros((3, batch), dtype=torch.int32)
    flags = cuda_trees.MULTIROOT * multiroot + cuda_trees.PROJECTIVE * projective + cuda_trees.COMPLETING * complete
    scores, lengths = contiguous(scores), contiguous(lengths)
    if scores.numel() == 0:
        weights.fill_(1.0)
        records[0], records[2] = 1, _CONVERGED
    elif starts.shape[1] > 0:
        _start(scores, lengths, starts, start_weights, vertices, weights, records, flags)
    oracle = oracle_for(n, projective)
    for room in _rooms(capacity, starts.shape[1]) if scores.numel() > 0 else []:
        pitch = workspace(n * n, n, room, oracle.scratch(n))
        programs = program_count(batch, 8 * pitch)
        work = scores.new_empty((programs, pitch), dtype=torch.float64)
        tensors = cuda_solve.Tensors(scores, lengths, mu, vertices, weights, gap, records, work)
        numbers = batch, n, capacity, room, pitch, max_iterations, flags
        launch(cuda_solve.solve, programs, scores.device, tensors, *numbers, **oracle.constants(n))
    sizes, calls, states = records
    if validate:
        _check(scores, lengths, states, gap, max_iterations)
    return mu, vertices, weights, sizes.clone(), gap, calls.clone(), states == _CONVERGED


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The projection of directions `[B, *parts]` onto those between active structures, for any structure."""
    batch, capacity, width = vertices.shape
    parts = direction.shape[1:].numel()
    out = torch.zeros_like(direction, memory_format=torch.contiguous_format)
    smaller = -1
    for room in _rooms(capacity) if direction.numel() > 0 else []:
        pitch = workspace(parts, width, room, 0)
        programs = program_count(batch, 8 * pitch + 4 * room * width)
        work = direction.new_empty((programs, pitch), dtype=torch.float64)
        scratch = direction.new_empty((programs, room, width), dtype=torch.int32)
        given = contiguous(vertices), contiguous(counts), contiguous(direction)
        tensors = cuda_projector.Tensors(*given, out, scratch, work)
        numbers = batch, parts, width, capacity, room, pitch, smaller
        launch(
            cuda_projector.apply, programs, direction.device, tensors, *numbers,
            BLOCK=8 if interpreting() else 256, num_warps=8, num_stages=1,
        )  # fmt: skip
        smaller = room
    return out


def _start(
    scores: Tensor, lengths: Tensor, given: Tensor, given_weights: Tensor, vertices: Tensor, weights: Tensor,
    records: Tensor, flags: int,
) -> None:  # fmt: skip
    """Write the trees to start from, as far as they are trees."""
    batch, n, _ = scores.shape
    numbers = batch, n, weights.shape[1], given.shape[1], flags
    tensors = cuda_trees.Tensors(
        scores, lengths, contiguous(given), contiguous(given_weights), vertices, weights, records
    )  # fmt: skip
    programs = program_count(batch, 1)
    launch(cuda_trees.start, programs, scores.device, tensors, *numbers, LEVELS=_levels(max(n, 32)), num_warps=1, num_stages=1)


def _levels(n: int) -> int:
    return next_power_of_2(n).bit_length() - 1


def _rooms(capacity: int, starts: int = 0) -> list[int]:
    """For how many structures each launch has room, so that those to start from fit into the first."""
    return [capacity] if starts > _ROOM or capacity <= _ROOM else [_ROOM, capacity]


def _check(scores: Tensor, lengths: Tensor, states: Tensor, gap: Tensor, limit: int) -> None:
    """Raise for the first sentence with trouble, and warn of those that have not converged: this waits for the device."""
    status = TREES.layout.status(scores, (lengths,))
    infeasible = (states == _INFEASIBLE) & (status == checks.OK)
    checks.raise_for(torch.where(infeasible, checks.INFEASIBLE, status))
    full, stopped = states == _FULL, (states != _CONVERGED) & (states != _FULL)
    if full.any():
        most = active_set_capacity(scores.shape[-1])
        warnings.warn(
            f"SparseMAP on a GPU keeps {most} trees a sentence at most; {int(full.sum())} of {len(full)} examples need "
            f"more (largest duality gap {float(gap[full].max()):.1e}); pass scores.cpu()",
            NotConverged,
            stacklevel=3,
        )
    if stopped.any():
        warnings.warn(not_converged(limit, ~stopped, gap), NotConverged, stacklevel=3)
