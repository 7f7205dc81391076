"""SparseMAP on the CPU with an oracle in Python: one iteration of all examples at a time, compiled, between its calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pullback.inference.records import Memory
from pullback.inference.sparsemap.compiled import Starts, make_result, tensors
from pullback.inference.sparsemap.solve import DONE, FACE, Problem, Result, solve
from pullback.inference.sparsemap.state import PHASE, SIZE, State, make_states, state_shapes
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
    search = _Search(scores.detach().reshape(batch, parts).double().contiguous(), starts, max_iterations, complete)
    order = np.arange(batch)
    search.step(order, np.empty((0, parts)))
    while len(active := np.flatnonzero(search.phases != DONE)):
        z = argmax(search.asked().reshape(scores.shape), torch.from_numpy(active))
        search.step(active, z.detach().reshape(len(active), parts).double().contiguous().numpy())
    return tensors(search.finish(), scores), torch.from_numpy(search.result["status"])


class _Search:
    """The examples of a batch, each with a state of its own.

    Args:
        scores: `[B, K]`, float64.
        starts: see `search`, as the rest.
        max_iterations: of an example.
        complete: for gradients.
    """

    def __init__(self, scores: Tensor, starts: Starts, max_iterations: int, complete: bool) -> None:
        batch, self._parts = scores.shape
        none, self._taken = np.empty(0, np.int64), np.zeros(1, np.int64)
        self._kept = {
            "scores": scores, "shape": none, "sizes": np.empty((batch, 0), np.int64), "options": none,
            "groups": np.empty(0, np.int32), "starts": starts[0].int().contiguous(), "start_weights": starts[1].contiguous(),
            "limit": max_iterations, "complete": complete, "oracle": np.zeros(4, np.int64), "order": none,
            "taken": self._taken, "found": np.empty((0, self._parts)),
        }  # fmt: skip
        self._problem = Problem.table(self._kept)
        self.result = make_result(batch, self._parts, 0, 0)
        self._results = Result.table(self.result)
        self._width, self._room = max(starts[0].shape[-1], 1), max(_ROOM, starts[0].shape[1])
        self._use(make_states(batch, self._parts, self._parts, self._width, self._room, False, 0))

    def _use(self, states: Memory) -> None:
        self._states = states
        self.phases, self._sizes = states.array("numbers")[:, PHASE], states.array("numbers")[:, SIZE]
        self._residual, self._tilted = (torch.from_numpy(states.array(name)) for name in ("residual", "tilted"))

    def asked(self) -> Tensor:
        """The scores `[B, K]` on which the oracle has to be called."""
        tilting = self.phases == FACE
        if not tilting.any():
            return self._residual
        return torch.where(torch.from_numpy(tilting)[:, None], self._tilted, self._residual)

    def step(self, order: np.ndarray, found: np.ndarray) -> None:
        """One iteration of some examples, with the structures that the oracle found for them."""
        self._run(order, found)
        status = self.result["status"]
        while (status[order] == FULL).any():
            full = status[order] == FULL
            order, found = order[full], found[full]
            self._enlarge(int(np.count_nonzero(found, axis=1).max()))
            status[order] = 0
            self._run(order, found)

    def _run(self, order: np.ndarray, found: np.ndarray) -> None:
        self._taken[0] = 0
        Problem.put(self._problem, "order", order)
        Problem.put(self._problem, "found", found)
        work = _WORK * self._parts * len(order)
        spread(solve, len(order), work, self._problem, self._states.table, self._results)

    def _enlarge(self, most: int) -> None:
        """Room for twice as many structures, or for structures of more parts."""
        if most > self._width:
            self._width = most
        else:
            self._room *= 2
        shapes = state_shapes(self._parts, self._parts, self._width, self._room, False, 0)
        self._use(self._states.enlarged(State, shapes))

    def finish(self) -> dict[str, np.ndarray]:
        """The result with the active sets."""
        batch, largest = len(self.phases), int(self._sizes.max(initial=1))
        self.result |= {"vertices": np.empty((batch, largest, self._width), np.int32), "weights": np.empty((batch, largest))}
        self._results = Result.table(self.result)
        self._run(np.arange(batch), self._kept["found"])
        return self.result
