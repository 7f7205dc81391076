"""SparseMAP on the CPU with an oracle in Python: one iteration of all examples at a time, compiled, between its calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pullback.inference.sparsemap.compiled import Starts, make_result, tensors
from pullback.inference.sparsemap.solve import DONE, FACE, Problem, Result, solve
from pullback.inference.sparsemap.state import PHASE, SIZE, State, make_states
from pullback.inference.sparsemap.status import FULL
from pullback.inference.threads import spread

_ROOM = 40
_WORK = 10  # operations of half a nanosecond for each part and iteration, about

Argmax = Callable[[Tensor, Tensor], Tensor]


def search(
    argmax: Argmax, scores: Tensor, starts: Starts, max_iterations: int, complete: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Project scores onto the convex hull of the structures that an argmax finds.

    Args:
        argmax: from scores like these, and the examples that are not solved yet, `[b]`, to their best structures
            `[b, *parts]`.
        scores: `[B, *parts]`, on the CPU; `-inf` on all that is no part.
        starts: as in `compiled.search`, as the rest.
        max_iterations: of an example.
        complete: for gradients.

    Returns:
        As `compiled.search`.
    """
    batch, parts = len(scores), scores.shape[1:].numel()
    none = np.empty(0, np.int64)
    problem = Problem(
        scores.detach().reshape(batch, parts).double().contiguous().numpy(), none, np.empty((batch, 0), np.int64), none,
        np.empty(0, np.int32), starts[0].int().contiguous().numpy(), starts[1].contiguous().numpy(), max_iterations,
        complete, np.zeros(4, np.int64), np.arange(batch),
    )  # fmt: skip
    states = make_states(batch, parts, parts, max(starts[0].shape[-1], 1), max(_ROOM, starts[0].shape[1]), False, 0)
    result, status = make_result(batch, parts, 0, 0), np.zeros(batch, np.int64)
    found = np.empty((0, parts))
    while True:
        _step(problem, states, found, result, status)
        full = status[problem.order] == FULL
        while full.any():
            problem, found = problem._replace(order=problem.order[full]), found[full]
            states = _roomy(states, int(np.count_nonzero(found, axis=1).max()))
            status[problem.order] = 0
            _step(problem, states, found, result, status)
            full = status[problem.order] == FULL
        phases = states.numbers[:, PHASE]
        active = np.flatnonzero(phases != DONE)
        if len(active) == 0:
            break
        asked = torch.from_numpy(states.residual)
        if (phases == FACE).any():
            asked = torch.where(torch.from_numpy(phases == FACE)[:, None], torch.from_numpy(states.tilted), asked)
        z = argmax(asked.reshape(scores.shape), torch.from_numpy(active))
        found = z.detach().reshape(len(active), parts).double().contiguous().numpy()
        problem = problem._replace(order=active)
    largest = int(states.numbers[:, SIZE].max(initial=1))
    result = result._replace(
        vertices=np.empty((batch, largest, states.slots.shape[2]), np.int32), weights=np.empty((batch, largest))
    )
    _step(problem._replace(order=np.arange(batch)), states, found, result, status)
    return tensors(result, scores), torch.from_numpy(status)


def _step(problem: Problem, states: State, found: np.ndarray, result: Result, status: np.ndarray) -> None:
    units = len(problem.order)
    work = _WORK * problem.scores.shape[-1] * units
    spread(solve, units, work, np.zeros(1, np.int64), problem, states, found, result, status)


def _roomy(states: State, most: int) -> State:
    """The states with room for about twice as many structures, of up to `most` parts or more."""
    count, room, width = states.slots.shape
    parts = states.mean.shape[1]
    new = make_states(count, parts, parts, max(most, width), 2 * room if most <= width else room - 24, False, 0)
    for old, into in zip((*states, *states.inverse), (*new, *new.inverse), strict=True):
        if isinstance(old, np.ndarray):
            into[tuple(map(slice, old.shape))] = old
    return new
