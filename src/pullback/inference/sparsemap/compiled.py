"""SparseMAP on the CPU with a compiled oracle, over threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.records import Memory
from pullback.inference.sparsemap import projector
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.solve import Problem, Result, solve
from pullback.inference.sparsemap.state import make_states
from pullback.inference.sparsemap.status import FULL
from pullback.inference.threads import spread

_WORK = 300  # operations of half a nanosecond for each part, about
_ROOM = 2048  # structures that an active set has room for at first; only what is used is touched

_NOTHING = np.empty((0, 0))

Starts = tuple[Tensor, Tensor]
Arrays = dict[str, np.ndarray]


def search(
    oracle: Oracle, scores: Tensor, sizes: Tensor, starts: Starts, max_iterations: int, complete: bool, options: tuple[int, ...]
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Project scores `[B, *parts]` onto the convex hull of an oracle's structures.

    Args:
        oracle: the structure.
        scores: on the CPU; what is no part, by the oracle's places, may be anything.
        sizes: `[B, number of sizes]`, int64, valid.
        starts: structures to start from, as part indices `[B, k, L]`, int32, L being the most parts of a structure,
            padded with -1; and their weights `[B, k]`, float64. What is no structure, or is forbidden, is ignored.
        max_iterations: how many calls of the oracle are enough for an example.
        complete: whether the active sets have to span the faces of the solutions, for gradients.
        options: of the family.

    Returns:
        mu, vertices `[B, k, L]`, their weights `[B, k]`, counts, gap, calls and converged, the last four `[B]`; and the
        status of each example.
    """
    batch, shape = len(scores), tuple(scores.shape[1:])
    width, parts = starts[0].shape[-1], scores.shape[1:].numel()
    room, threads = min(parts + 2, max(_ROOM, 8 * width)), min(torch.get_num_threads(), batch)
    order = np.argsort(-sizes.sum(1).numpy(), kind="stable") if threads > 1 else np.arange(batch)
    given = {
        "scores": scores.detach().reshape(batch, parts).double().contiguous(), "shape": np.array(shape, np.int64),
        "sizes": sizes.contiguous(), "options": np.array(options, np.int64), "groups": oracle.groups_of(shape),
        "starts": starts[0].contiguous(), "start_weights": starts[1].contiguous(), "limit": max_iterations,
        "complete": complete, "oracle": oracle.addresses, "order": order, "taken": np.zeros(1, np.int64), "found": _NOTHING,
    }  # fmt: skip
    result = make_result(batch, parts, room, width)
    while len(order):
        states = make_states(threads, parts, oracle.place_count(shape), width, room, oracle.rough, oracle.work(shape))
        launch(given, states, result, threads, _WORK * parts * len(order))
        order = np.flatnonzero(result["status"] == FULL)
        if len(order):
            room *= 2
            given |= {"order": order, "taken": np.zeros(1, np.int64)}
            result = _more_room(given, result, room)
    return tensors(result, scores), torch.from_numpy(result["status"])


def launch(problem: dict[str, Any], states: Memory, result: Arrays, units: int, work: float) -> None:
    """Run the kernel on a problem."""
    spread(solve, units, work, Problem.table(problem), states.table, Result.table(result))


def make_result(batch: int, parts: int, room: int, width: int) -> Arrays:
    """The arrays of a `Result`."""
    return {
        "mu": np.zeros((batch, parts)),
        "vertices": np.empty((batch, room, width), np.int32),
        "weights": np.empty((batch, room)),
        "counts": np.zeros(batch, np.int32),
        "gap": np.zeros(batch),
        "calls": np.zeros(batch, np.int32),
        "converged": np.ones(batch, bool),
        "status": np.zeros(batch, np.int64),
    }


def _more_room(problem: dict[str, Any], result: Arrays, room: int) -> Arrays:
    """A larger result for the problem, which gets the active sets so far as starts."""
    used = np.arange(result["weights"].shape[1]) < result["counts"][:, None]
    problem["starts"] = np.where(used[..., None], result["vertices"], -1).astype(np.int32)
    problem["start_weights"] = np.where(used, result["weights"], 0.0)
    batch, parts = result["mu"].shape
    larger = make_result(batch, parts, room, result["vertices"].shape[-1])
    for name, old in result.items():
        larger[name][tuple(map(slice, old.shape))] = old
    larger["mu"][problem["order"]] = 0.0
    larger["status"][problem["order"]] = 0
    return larger


def tensors(result: Arrays, scores: Tensor) -> tuple[Tensor, ...]:
    """The result as tensors, no larger than the largest active set."""
    most = int(result["counts"].max(initial=1))
    used = np.arange(most) < result["counts"][:, None]
    vertices = np.where(used[..., None], result["vertices"][:, :most], np.int32(-1))
    weights = np.where(used, result["weights"][:, :most], 0.0)
    mu = torch.from_numpy(result["mu"]).reshape(scores.shape).to(scores.dtype)
    rest = (result[name] for name in ("counts", "gap", "calls", "converged"))
    return mu, *map(torch.from_numpy, (vertices, weights, *rest))


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The Jacobian of SparseMAP, which is symmetric, times a direction `[B, *parts]`."""
    result = torch.zeros(direction.shape, dtype=torch.float64)
    if direction.numel() > 0:
        batch, largest = len(direction), int(counts.max())
        inputs = vertices, counts, direction.double().reshape(batch, -1)
        scratch = projector.make_scratch(min(torch.get_num_threads(), batch), largest, direction[0].numel())
        work = float((counts.double() ** 3).sum())
        arrays = (tensor.contiguous().numpy() for tensor in inputs)
        spread(projector.apply, batch, work, *arrays, scratch.table, result.reshape(batch, -1).numpy())
    return result.to(direction.dtype)
