"""SparseMAP on the CPU with a compiled oracle, over threads."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.records import Arrangement, Memory
from pullback.inference._numba.threads import spread
from pullback.inference.front.checks import FULL
from pullback.inference.sparsemap import projector
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.solution import Starts
from pullback.inference.sparsemap.solve import Problem, Result, solve
from pullback.inference.sparsemap.state import room_of, state_plan

_WORK = 300  # operations of half a nanosecond for each part, about
_ROOM = 2048  # structures that an active set has room for at first; only what is used is touched

_NOTHING = torch.from_numpy(np.empty((0, 0)))

Sizes = tuple[tuple[Tensor, ...], tuple[int, ...]]
Tensors = dict[str, Tensor]


def search(
    oracle: Oracle,
    scores: Tensor,
    sizes: Sizes,
    starts: Starts,
    max_iterations: int,
    tolerance: float,
    complete: bool,
    options: tuple[int, ...],
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Project scores `[B, *parts]` onto the convex hull of an oracle's structures.

    Args:
        oracle: the structure.
        scores: on the CPU; what is no part, by the oracle's places, may be anything.
        sizes: `[B]` each, int64, and the largest value of each that is valid.
        starts: structures to start from, as part indices `[B, k, L]`, int32, L being the most parts of a structure,
            padded with -1; and their weights `[B, k]`, float64. What is no structure, or is forbidden, is ignored.
        max_iterations: how many calls of the oracle are enough for an example.
        tolerance: a duality gap that is small enough.
        complete: whether the active sets have to span the faces of the solutions, for gradients.
        options: of the family.

    Returns:
        mu, vertices `[B, k, L]`, their weights `[B, k]`, counts, gap, calls and converged, the last four `[B]`; and the
        status of each example.
    """
    shape, values, width = tuple(scores.shape[1:]), sizes[0], starts[0].shape[-1]
    batch, parts = scores.shape[0], math.prod(shape)
    calls = max_iterations + starts[0].shape[1]  # each finds one structure at most
    room, threads = min(parts + 2, max(_ROOM, min(8 * width, calls))), min(torch.get_num_threads(), batch)
    size = values[0].reshape(batch, 1) if len(values) == 1 else torch.stack(values, 1)
    fixed, _kept = oracle.fixed(shape, sizes[1], options)
    plan, holds = _states(oracle, shape, width, room)
    taken = np.zeros(4, np.int64)
    given: dict[str, Any] = {
        "fixed": fixed, "scores": scores.double().reshape(batch, parts).contiguous(), "sizes": size.contiguous(),
        "starts": starts[0].contiguous(), "start_weights": starts[1].contiguous(), "limit": max_iterations,
        "tolerance": _one(tolerance), "complete": complete,
        "order": _longest_first(size) if threads > 1 else _in_order(batch),
        "taken": torch.from_numpy(taken), "found": _NOTHING,
    }  # fmt: skip
    try:
        result = make_result(batch, parts, holds, width)
        while batch > 0:
            states, work = Memory.kept(plan, threads), _WORK * parts * len(given["order"])
            spread(solve, threads, work, Problem.table(given), states.table, Result.table(result))
            states.keep()
            if taken[2] == 0:  # none is FULL
                break
            given["order"], room, taken[:] = torch.nonzero(result["status"] == FULL).flatten(), 2 * room, 0
            plan, holds = _states(oracle, shape, width, room)
            result = _more_room(given, result, holds)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate" not in str(error):
            raise
        raise MemoryError(
            f"SparseMAP has no memory for active sets of {room} structures with up to {width} of {parts} parts, for a batch of "
            f"{batch}: pass a smaller max_iterations, or fewer examples at a time"
        ) from error
    return tensors(result, scores), result["status"]


@functools.lru_cache(maxsize=16)
def _one(number: float) -> Tensor:
    """A number as an array, read only."""
    return torch.from_numpy(np.array([number]))


@functools.lru_cache(maxsize=64)
def _in_order(batch: int) -> Tensor:
    """All examples, read only."""
    return torch.from_numpy(np.arange(batch))


@functools.lru_cache(maxsize=64)
def _states(oracle: Oracle, shape: tuple[int, ...], width: int, room: int) -> tuple[Arrangement, int]:
    """The states of a search with room for at least `room` structures, and the room that there is."""
    plan = state_plan(math.prod(shape), oracle.place_count(shape), width, room, rough=oracle.rough, work=oracle.work(shape))
    return plan, room_of(plan)


def _longest_first(sizes: Tensor) -> Tensor:
    """The examples in an order that lets threads end at about the same time."""
    return sizes.sum(1).argsort(descending=True, stable=True)


def make_result(batch: int, parts: int, room: int, width: int) -> Tensors:
    """The arrays of a `Result`; those that are not written for all examples begin as zeros."""
    arrays = {
        "mu": np.zeros((batch, parts)), "counts": np.zeros(batch, np.int32), "gap": np.zeros(batch),
        "calls": np.zeros(batch, np.int32), "converged": np.ones(batch, bool), "status": np.zeros(batch, np.int64),
        "phase": np.zeros(batch, np.int64),
    }  # fmt: skip
    result: Tensors = dict(zip(arrays, map(torch.from_numpy, arrays.values()), strict=True))
    # PyTorch's, as NumPy asks for huge pages, each of which is cleared as a whole when it is touched
    result["vertices"] = torch.empty((batch, room, width), dtype=torch.int32, device="cpu")
    result["weights"] = torch.empty((batch, room), dtype=torch.float64, device="cpu")
    return result


def _more_room(problem: dict[str, Any], result: Tensors, room: int) -> Tensors:
    """A larger result for the problem, which gets the active sets so far as starts."""
    problem["starts"], problem["start_weights"] = trimmed(result, result["weights"].shape[1])
    batch, parts = result["mu"].shape
    larger = make_result(batch, parts, room, result["vertices"].shape[-1])
    for name, old in result.items():
        larger[name][tuple(map(slice, old.shape))] = old
    larger["mu"][problem["order"]] = 0.0
    larger["status"][problem["order"]] = 0
    return larger


def trimmed(result: Tensors, most: int) -> tuple[Tensor, Tensor]:
    """The first structures of the active sets and their weights; -1 and 0 where there are none."""
    counts = result["counts"].numpy()
    vertices, weights = result["vertices"].numpy()[:, :most].copy(), result["weights"].numpy()[:, :most].copy()
    if len(counts) != 1 or most != counts[0]:
        unused = np.arange(most) >= counts[:, None]
        vertices[unused], weights[unused] = -1, 0.0
    return torch.from_numpy(vertices), torch.from_numpy(weights)


def tensors(result: Tensors, scores: Tensor) -> tuple[Tensor, ...]:
    """The result, no larger than the largest active set."""
    most = max([1, *result["counts"].tolist()])
    mu = result["mu"].reshape(scores.shape).to(scores.dtype)
    return mu, *trimmed(result, most), result["counts"], result["gap"], result["calls"], result["converged"]


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The Jacobian of SparseMAP, which is symmetric, times a direction `[B, *parts]`."""
    result = torch.zeros(direction.shape, dtype=torch.float64, device="cpu")
    if direction.numel() > 0:
        batch, largest = len(direction), int(counts.max())
        vectors = direction.double().reshape(batch, -1).contiguous()
        parts, room = vectors.shape[1], -(-largest // 64) * 64  # few plans, which are kept
        threads = min(torch.get_num_threads(), batch)
        states = Memory.kept(state_plan(parts, parts, vertices.shape[2], room), threads)
        spread(
            projector.apply, batch, float(batch * largest**3), vertices.contiguous().numpy(), counts.contiguous().numpy(),
            vectors.numpy(), states.table, result.reshape(batch, -1).numpy(),
        )  # fmt: skip
        states.keep()
    return result.to(direction.dtype)
