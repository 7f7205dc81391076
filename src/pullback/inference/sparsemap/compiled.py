"""SparseMAP on the CPU with a compiled oracle, over threads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference.sparsemap import projector
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.solve import Problem, Result, solve
from pullback.inference.sparsemap.state import make_states
from pullback.inference.sparsemap.status import FULL
from pullback.inference.threads import spread

_WORK = 300  # operations of half a nanosecond for each part, about
_ROOM = 2048  # structures that an active set has room for at first; only what is used is touched

Starts = tuple[Tensor, Tensor]


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
    room = min(parts + 2, max(_ROOM, 8 * width))
    order = np.argsort(-sizes.sum(1).numpy(), kind="stable")
    groups = oracle.groups(shape) if oracle.groups else np.empty(0, np.int32)
    problem = Problem(
        scores.detach().reshape(batch, parts).double().contiguous().numpy(), np.array(shape, np.int64),
        sizes.contiguous().numpy(), np.array(options, np.int64), groups, starts[0].contiguous().numpy(),
        starts[1].contiguous().numpy(), max_iterations, complete, oracle.addresses, order,
    )  # fmt: skip
    result, status = make_result(batch, parts, room, width), np.zeros(batch, np.int64)
    while len(problem.order):
        _launch(oracle, problem, room, result, status)
        problem, room = problem._replace(order=np.flatnonzero(status == FULL)), 2 * room
        if len(problem.order):
            problem, result = _more_room(problem, result, room)
    return tensors(result, scores), torch.from_numpy(status)


def _launch(oracle: Oracle, problem: Problem, room: int, result: Result, status: np.ndarray) -> None:
    shape, (_batch, parts) = tuple(problem.shape.tolist()), problem.scores.shape
    status[problem.order] = 0
    count = min(torch.get_num_threads(), len(problem.order))
    width, places, work = result.vertices.shape[-1], oracle.place_count(shape), oracle.work(shape)
    states = make_states(count, parts, places, width, room, oracle.rough, work)
    spread(
        solve, count, _WORK * parts * len(problem.order), np.zeros(1, np.int64), problem, states,
        np.empty((0, 0)), result, status,
    )  # fmt: skip


def make_result(batch: int, parts: int, room: int, width: int) -> Result:
    return Result(
        np.zeros((batch, parts)),
        np.empty((batch, room, width), np.int32),
        np.empty((batch, room)),
        np.zeros(batch, np.int32),
        np.zeros(batch),
        np.zeros(batch, np.int32),
        np.ones(batch, bool),
    )


def _more_room(problem: Problem, result: Result, room: int) -> tuple[Problem, Result]:
    """The problem with the active sets so far as starts, and a larger result."""
    used = np.arange(result.weights.shape[1]) < result.counts[:, None]
    starts, weights = np.where(used[..., None], result.vertices, -1), np.where(used, result.weights, 0.0)
    batch, parts = problem.scores.shape
    larger = make_result(batch, parts, room, result.vertices.shape[-1])
    for old, new in zip(result, larger, strict=True):
        new[tuple(map(slice, old.shape))] = old
    larger.mu[problem.order] = 0.0
    return problem._replace(starts=starts.astype(np.int32), start_weights=weights), larger


def tensors(result: Result, scores: Tensor) -> tuple[Tensor, ...]:
    """The result as tensors, no larger than the largest active set."""
    most = int(result.counts.max(initial=1))
    unused = np.arange(most) >= result.counts[:, None]
    vertices, weights = result.vertices[:, :most].copy(), result.weights[:, :most].copy()
    vertices[unused], weights[unused] = -1, 0.0
    mu = torch.from_numpy(result.mu).reshape(scores.shape).to(scores.dtype)
    return mu, *map(torch.from_numpy, (vertices, weights, *result[3:]))


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    """The Jacobian of SparseMAP, which is symmetric, times a direction `[B, *parts]`."""
    result = torch.zeros(direction.shape, dtype=torch.float64)
    if direction.numel() > 0:
        inputs = vertices, counts, direction.double().reshape(len(direction), -1), result.reshape(len(direction), -1)
        work = float((counts.double() ** 3).sum())
        spread(projector.apply, len(counts), work, *(tensor.contiguous().numpy() for tensor in inputs))
    return result.to(direction.dtype)
