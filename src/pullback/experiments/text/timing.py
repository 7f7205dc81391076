"""How much of training is inference over the trees: every call of the structure, and the backward passes through it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from pullback.inference.sparsemap.solution import SparseMAPSolution
from pullback.structures import DependencyTree, Structure


class Stopwatch:
    """Adds up intervals: by the clock on a CPU, by events on a GPU, which nobody waits for before `take`.

    Args:
        device: where the work is done.

    Attributes:
        seconds: so far since the last `take`; on a GPU, 0.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self.seconds = 0.0
        self._began: Any = None
        self._pending: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def start(self) -> None:
        self._began = self._now()

    def stop(self) -> None:
        if self._cuda:
            self._pending.append((self._began, self._now()))
        else:
            self.seconds += self._now() - self._began

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.stop()

    def take(self) -> float:
        """The seconds since the last `take`. On a GPU it waits for the work that was timed."""
        if self._pending:
            self._pending[-1][1].synchronize()
            self.seconds += sum(begin.elapsed_time(end) for begin, end in self._pending) / 1000
            self._pending.clear()
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def _now(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


class TimedTrees(Structure):
    """Dependency trees whose inference is timed, in the forward and in the backward pass.

    Args:
        trees: the structure that does the work.
        stopwatch: adds up the time.
    """

    event_dims = DependencyTree.event_dims

    def __init__(self, trees: DependencyTree, stopwatch: Stopwatch) -> None:
        self._trees = trees
        self._stopwatch = stopwatch

    def argmax(self, scores: Tensor) -> Tensor:
        return self._timed(self._trees.argmax, scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self._timed(self._trees.marginals, scores)

    def sparsemap(self, scores: Tensor, *, warm_start: Tensor | SparseMAPSolution | None = None) -> Tensor:
        return self._timed(lambda s: self._trees.sparsemap(s, warm_start=warm_start), scores)

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        return self._timed(lambda s: self._trees.log_prob(s, z), scores)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self._timed(lambda s: self._trees.sample(s, generator), scores)

    def allowed(self, scores: Tensor) -> Tensor:
        return self._timed(self._trees.allowed, scores)

    def _timed(self, inference: Callable[[Tensor], Tensor], scores: Tensor) -> Tensor:
        differentiable = torch.is_grad_enabled() and scores.requires_grad
        with self._stopwatch.running():
            out = inference(_Call.apply(scores, self._stopwatch.stop) if differentiable else scores)
            return _Call.apply(out, self._stopwatch.start) if out.requires_grad else out


class _Call(torch.autograd.Function):
    """The identity; its backward pass calls a function first."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, function: Callable[[], None]) -> Tensor:
        ctx.function = function
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.function()
        return gradient, None
