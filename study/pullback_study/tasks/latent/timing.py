"""How much of training is inference over the structure: every call of it, and the backward passes through it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pullback.structures import Structure, Wrapper

_Intervals = list[tuple[torch.cuda.Event, torch.cuda.Event]]


@dataclass
class Replays:
    """The intervals inside a CUDA graph, and how often it was replayed since they were last added up."""

    intervals: _Intervals
    count: int = 0


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
        self._pending: _Intervals = []
        self._replays: list[Replays] = []

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

    @contextlib.contextmanager
    def capturing(self) -> Iterator[Replays]:
        """Intervals inside belong to a CUDA graph that is being captured, and count when it is replayed."""
        before, self._pending = self._pending, []
        try:
            yield Replays(self._pending)
        finally:
            self._pending = before

    def replayed(self, replays: Replays) -> None:
        """Count a replay; each is taken to be as long as the last one before `take`."""
        if replays.count == 0:
            self._replays.append(replays)
        replays.count += 1

    def take(self) -> float:
        """The seconds since the last `take`. On a GPU it waits for the work that was timed."""
        for replays in self._replays:
            self.seconds += replays.count * _seconds_of(replays.intervals)
            replays.count = 0
        self._replays.clear()
        self.seconds += _seconds_of(self._pending)
        self._pending.clear()
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def _now(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        # one that a graph may record is a node of it, whose time can be read after a replay
        options = {"external": True} if torch.cuda.is_current_stream_capturing() else {}
        event = torch.cuda.Event(enable_timing=True, **options)
        event.record()
        return event


def _seconds_of(intervals: _Intervals) -> float:
    for _, end in intervals[-1:]:
        end.synchronize()
    return sum(begin.elapsed_time(end) for begin, end in intervals) / 1000


class Timed(Wrapper):
    """A structure whose inference is timed, in the forward and in the backward pass.

    Args:
        structure: does the work.
        stopwatch: adds up the time.
    """

    def __init__(self, structure: Structure, stopwatch: Stopwatch) -> None:
        super().__init__(structure)
        self._stopwatch = stopwatch

    def around(self, operation: str, inference: Callable[[Tensor], Any], scores: Tensor) -> Any:
        differentiable = torch.is_grad_enabled() and scores.requires_grad
        with self._stopwatch.running():
            out = inference(_Call.apply(scores, self._stopwatch.stop) if differentiable else scores)
            through = isinstance(out, Tensor) and out.requires_grad
            return _Call.apply(out, self._stopwatch.start) if through else out


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
