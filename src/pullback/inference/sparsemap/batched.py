"""SparseMAP on the CPU with an oracle in Python: one iteration of all examples at a time, compiled, between its calls."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.inference.records import Memory, Plan
from pullback.inference.sparsemap.compiled import Starts, Tensors, make_result, tensors
from pullback.inference.sparsemap.solve import DONE, FACE, Problem, Result, solve
from pullback.inference.sparsemap.state import PHASE, SIZE, state_plan
from pullback.inference.sparsemap.status import FULL
from pullback.inference.threads import spread

_ROOM = 40  # structures that an active set has room for at first, or more, if all take no more memory than:
_BYTES = 1 << 26  # of which only what is used is touched
_WORK = 10  # operations of half a nanosecond for each part and iteration, about

zeros = functools.partial(torch.zeros, device="cpu")  # whatever the default device is

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
    search.step(torch.arange(batch, device="cpu"), scores.new_empty(0, parts, dtype=torch.float64))
    while len(active := torch.nonzero(search.phases != DONE).flatten()):
        z = argmax(search.asked().reshape(scores.shape), active)
        search.step(active, z.detach().reshape(len(active), parts).double().contiguous())
    return tensors(search.finish(), scores), search.result["status"]


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
        none, self._taken = zeros(0, dtype=torch.long), zeros(1, dtype=torch.long)
        self._kept: dict[str, Any] = {
            "scores": scores, "shape": none, "sizes": zeros(batch, 0, dtype=torch.long), "limits": none, "options": none,
            "groups": none.int(), "starts": starts[0].int().contiguous(), "start_weights": starts[1].contiguous(),
            "limit": max_iterations, "complete": complete, "oracle": zeros(4, dtype=torch.long), "order": none,
            "taken": self._taken, "found": scores[:0],
        }  # fmt: skip
        self._problem = Problem.table(self._kept)
        self.result = make_result(batch, self._parts, 0, 0)
        self._results = Result.table(self.result)
        self._width = max(starts[0].shape[-1], 1)
        self._room = max(math.isqrt(_BYTES // (4 * max(batch, 1))), _ROOM, starts[0].shape[1])
        self._room = max(min(self._room, self._parts + 2), starts[0].shape[1])
        self._use(Memory(self._plan(), batch))

    def _plan(self) -> Plan:
        return state_plan(self._parts, self._parts, self._width, self._room)

    def _use(self, states: Memory) -> None:
        self._states = states
        arrays = (states.array(name) for name in ("numbers", "residual", "tilted"))
        numbers, self._residual, self._tilted = map(torch.from_numpy, arrays)
        self.phases, self._sizes = numbers[:, PHASE], numbers[:, SIZE]

    def asked(self) -> Tensor:
        """The scores `[B, K]` on which the oracle has to be called."""
        tilting = self.phases == FACE
        if not tilting.any():
            return self._residual
        return torch.where(tilting[:, None], self._tilted, self._residual)

    def step(self, order: Tensor, found: Tensor) -> None:
        """One iteration of some examples, with the structures that the oracle found for them."""
        self._run(order, found)
        status = self.result["status"]
        while FULL in status.numpy():
            full = status[order] == FULL
            order, found = order[full], found[full]
            self._enlarge(int((found != 0).sum(1).max()))
            status[order] = 0
            self._run(order, found)

    def _run(self, order: Tensor, found: Tensor) -> None:
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
        size = int(self._sizes.max()) + 1
        self._use(self._states.enlarged(self._plan(), {"slots": size, "inverse.base": size * (size + 1) // 2}))

    def finish(self) -> Tensors:
        """The result with the active sets."""
        batch, largest = len(self.phases), max([1, *self._sizes.tolist()])
        self.result |= {
            "vertices": zeros(batch, largest, self._width, dtype=torch.int32),
            "weights": zeros(batch, largest, dtype=torch.float64),
        }
        self._results = Result.table(self.result)
        self._run(torch.arange(batch, device="cpu"), self._kept["found"])
        return self.result
