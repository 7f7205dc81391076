"""SparseMAP on the CPU with an oracle in Python: one iteration of all examples at a time, compiled, between its calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.records import Arrangement, Memory
from pullback.inference._numba.threads import spread
from pullback.inference.front.checks import FULL
from pullback.inference.sparsemap.active_set import entries, padded
from pullback.inference.sparsemap.compiled import Tensors, make_result, tensors
from pullback.inference.sparsemap.oracle import fixed
from pullback.inference.sparsemap.solution import Argmax, Starts, dense
from pullback.inference.sparsemap.solve import DONE, FACE, Problem, Result, solve
from pullback.inference.sparsemap.state import SIZE, state_plan

_ROOM = 40  # structures that an active set has room for at first, or more, if all take no more memory than:
_BYTES = 3 << 24  # of which only what is used is touched, and which a thread keeps
_WORK = 10  # operations of half a nanosecond for each part and iteration, about


def search(
    argmax: Argmax, scores: Tensor, starts: Starts, max_iterations: int, tolerance: float, complete: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Project scores `[B, *parts]`, -inf on all that is no part, onto the convex hull of the structures that an argmax finds.

    The argmax is called with scores like these and the examples that are not solved yet, `[b]`, and returns their best
    structures `[b, *parts]`. The rest is as in `compiled.search`.
    """
    batch, parts = len(scores), scores.shape[1:].numel()
    flat = scores.detach().reshape(batch, parts).double().contiguous()
    first, width = None, max(starts[0].shape[-1], 1)
    if starts[1].shape[1] == 0 and flat.numel() > 0 and bool((flat < torch.inf).all()):
        first = argmax(flat.reshape(scores.shape), torch.from_numpy(np.arange(batch)))  # which also says how long lists are
        width = max(width, int((first != 0).reshape(batch, parts).sum(1).max()))
    search = _Search(flat, scores.shape, starts, width, (max_iterations, tolerance), complete)
    search.step(search.unsolved(), flat[:0])
    while len(active := search.unsolved()):
        z = argmax(search.asked(), active) if first is None else first
        search.step(active, z.reshape(len(active), parts).double().contiguous())
        first = None
    return tensors(search.finish(), scores), search.result["status"]


def usable(argmax: Argmax, scores: Tensor, starts: Starts) -> Starts:
    """The structures to start from with a weight of zero for those that the argmax does not find among their own parts.

    Args:
        argmax: from scores `[any, *parts]` and the example of each to the best structures.
        scores: `[B, *parts]`; `-inf` on all that is no part.
        starts: lists of parts `[B, k, L]`, and weights `[B, k]`.
    """
    lists, weights = starts
    count = lists.shape[1]
    if weights.numel() == 0:
        return starts
    z = dense(lists, scores.shape[1:].numel(), torch.float64)
    inside = torch.where((z > 0) & (scores.flatten(1) > -torch.inf)[:, None], 1.0, -torch.inf)
    examples = torch.arange(len(scores), device=scores.device).repeat_interleave(count)
    best = argmax(inside.reshape(len(examples), *scores.shape[1:]), examples).reshape(z.shape)
    return lists, torch.where((best == z).all(-1), weights, 0.0)


class _Search:
    """The examples of a batch, each with a state of its own, that has room for structures of `width` parts at first."""

    def __init__(
        self, scores: Tensor, shape: torch.Size, starts: Starts, width: int, enough: tuple[int, float], complete: bool
    ) -> None:
        batch, self._parts = scores.shape
        self._shape = shape
        row, nothing = fixed((), (), (), np.zeros(6), ())
        self._taken = np.zeros(4, np.int64)
        self._kept: dict[str, Any] = {
            "fixed": row, "scores": scores, "sizes": torch.from_numpy(np.zeros((batch, 0), np.int64)),
            "starts": starts[0].int().contiguous(), "start_weights": starts[1].contiguous(), "limit": enough[0],
            "tolerance": scores.new_tensor(enough[1:], dtype=torch.float64), "complete": complete, "order": nothing["shape"],
            "taken": torch.from_numpy(self._taken), "found": scores[:0],
            "nothing": nothing,
        }  # fmt: skip
        self._problem = Problem.table(self._kept)
        self._unsolved = torch.from_numpy(np.arange(batch))
        self.result = make_result(batch, self._parts, 0, 0)
        self._phases = self.result["phase"].numpy()
        self._results = Result.table(self.result)
        self._width = width
        self._room = max(math.isqrt(_BYTES // (4 * max(batch, 1))), _ROOM)
        self._room = max(min(self._room, self._parts + 2), starts[0].shape[1])
        self._use(Memory.kept(self._plan(), batch))
        self._numbers[:] = 0

    def _plan(self) -> Arrangement:
        return state_plan(self._parts, self._parts, self._width, self._room)

    def _use(self, states: Memory) -> None:
        self._states, batch = states, len(self._phases)
        self._numbers, residual, tilted = (states.array(name)[:batch] for name in ("numbers", "residual", "tilted"))
        self._residual, self._tilted = (torch.from_numpy(x).view(self._shape) for x in (residual, tilted))

    def unsolved(self) -> Tensor:
        """The examples that are not solved yet, `[b]`: the same tensor until another one is solved."""
        if self._taken[3]:
            self._unsolved = torch.from_numpy(np.flatnonzero(self._phases != DONE))
            self._taken[3] = 0
        return self._unsolved

    def asked(self) -> Tensor:
        """The scores `[B, *parts]` on which the oracle has to be called."""
        if not self._kept["complete"] or FACE not in self._phases:
            return self._residual
        tilting = torch.from_numpy(self._phases == FACE).view(-1, *[1] * (len(self._shape) - 1))
        return torch.where(tilting, self._tilted, self._residual)

    def step(self, order: Tensor, found: Tensor) -> None:
        """One iteration of some examples, with the structures that the oracle found for them."""
        self._run(order, found)
        while self._taken[2]:
            full = self.result["status"][order] == FULL
            order, found = order[full], found[full]
            self._enlarge(int((found != 0).sum(1).max()))
            self.result["status"][order] = 0
            self._run(order, found)

    def _run(self, order: Tensor, found: Tensor) -> None:
        # to and fro: what the last iteration used at its end is in the cache
        self._taken[:3] = 0, 1 - self._taken[1], 0
        if order is not self._kept["order"]:
            self._kept["order"] = order
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
        size = int(self._numbers[:, SIZE].max()) + 1
        self._use(self._states.enlarged(self._plan(), {"slots": size, "inverse.base": entries(padded(size))}))

    def finish(self) -> Tensors:
        """The result with the active sets."""
        batch, largest = len(self._phases), max([1, *self._numbers[:, SIZE].tolist()])
        self.result["vertices"] = torch.from_numpy(np.zeros((batch, largest, self._width), np.int32))
        self.result["weights"] = torch.from_numpy(np.zeros((batch, largest)))
        self._results = Result.table(self.result)
        self._run(torch.from_numpy(np.arange(batch)), self._kept["found"])
        self._states.keep()
        return self.result
