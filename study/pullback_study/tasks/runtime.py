"""What training steps run with: their own random numbers, a clock for the inference in them, and CUDA graphs."""

from __future__ import annotations

import contextlib
import gc
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.structures import Structure, StructureWrapper
from pullback_study.runs.files import content_hash
from pullback_study.runs.side_by_side import away

WIDTHS = 4
"""In CUDA graphs, sentences are padded to a multiple of this many words, for few different shapes."""
_Intervals = list[tuple[Any, Any]]  # events, or seconds on a CPU


class RandomNumbers:
    """The state of PyTorch's default generators, put in place while the run computes, whatever else the process draws.

    Dropout can only draw from the default generators, so all noise of a run does. The seed is made of `parts`.
    """

    def __init__(self, device: torch.device, *parts: str | int) -> None:
        seed = int(content_hash(list(parts)), 16)
        self._own = [torch.Generator().manual_seed(seed)]
        if device.type == "cuda":
            self._own.append(torch.Generator(device).manual_seed(seed))

    @property
    def state(self) -> list[Tensor]:
        return [own.get_state() for own in self._own]

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Draw from this run's numbers inside, and in graphs captured there; others go on as if nothing had been drawn."""
        host, *device = self._own
        with _kept(bool(device)):
            torch.set_rng_state(host.get_state())
            for own in device:
                _of_device().graphsafe_set_state(own)  # shared, not copied
            yield
            host.set_state(torch.get_rng_state())

    def restore(self, state: list[Tensor]) -> None:
        """Go on from an earlier `state`; a generator that it does not have, of another device, keeps its own."""
        for own, its in zip(self._own, state, strict=False):
            own.set_state(its)


def wait_for(device: torch.device) -> None:
    """Wait until the current stream of a GPU is done; other runs of this process go on, and the core is free."""
    if device.type == "cuda":
        event = torch.cuda.Event(blocking=True)
        event.record(torch.cuda.current_stream(device))
        with _kept(True), away():
            event.synchronize()


@contextlib.contextmanager
def _kept(on_device: bool) -> Iterator[None]:
    """The default generators are afterwards what they were before, whatever is drawn or put in place inside."""
    host, device = torch.get_rng_state(), _of_device().graphsafe_get_state() if on_device else None
    try:
        yield
    finally:
        torch.set_rng_state(host)
        if device is not None:
            _of_device().graphsafe_set_state(device)


def _of_device() -> torch.Generator:
    torch.cuda.init()
    return torch.cuda.default_generators[torch.cuda.current_device()]


class Stopwatch:
    """Adds up intervals: by the clock on a CPU, by events on a GPU, which nobody waits for before `take`."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._began: Any = None
        self._pending: _Intervals = []
        self._replayed: list[_Intervals] = []

    def start(self) -> None:
        self._began = self._now()

    def stop(self) -> None:
        self._pending.append((self._began, self._now()))

    @contextlib.contextmanager
    def capturing(self) -> Iterator[_Intervals]:
        """Intervals inside belong to a CUDA graph that is being captured, and count when it is replayed."""
        before, self._pending = self._pending, []
        try:
            yield self._pending
        finally:
            self._pending = before

    def replayed(self, intervals: _Intervals) -> None:
        """Count a replay; each is taken to be as long as the last one before `take`."""
        if intervals:
            self._replayed.append(intervals)

    def take(self) -> float:
        """The seconds since the last `take`. On a GPU it waits for the work that was timed."""
        seconds = sum(map(_seconds_of, [self._pending, *self._replayed]))
        self._pending.clear()
        self._replayed.clear()
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
    if not intervals or isinstance(intervals[0][0], float):
        return sum(end - begin for begin, end in intervals)
    intervals[-1][1].synchronize()
    return sum(begin.elapsed_time(end) for begin, end in intervals) / 1000


class Timed(StructureWrapper):
    """A structure whose inference is timed by a stopwatch, in the forward and in the backward pass."""

    def __init__(self, structure: Structure, stopwatch: Stopwatch) -> None:
        super().__init__(structure)
        self._stopwatch = stopwatch

    def around(self, operation: str, inference: Callable[[Tensor], Any], scores: Tensor) -> Any:
        if torch.is_grad_enabled() and scores.requires_grad:
            scores = scores.view_as(scores)
            scores.register_hook(lambda gradient: self._stopwatch.stop())  # the last of its backward pass
        self._stopwatch.start()
        out = inference(scores)
        self._stopwatch.stop()
        if isinstance(out, Tensor) and out.requires_grad:
            out.register_hook(lambda gradient: self._stopwatch.start())  # the first
        return out


class Captured:
    """A method as one CUDA graph for each shape of a batch, replayed with other examples.

    A small model's step is hundreds of launches, which Python is slow to make. The first call of all, and the first of each
    shape that no method of the same `kind` has had in this process, runs as it is, which compiles what it needs; the next is
    captured. What the method, of examples and the number of words they are padded to, reads and changes has to stay where it
    is: parameters, the optimizer's state, a sum of losses. It waits for nothing, and leaves nothing behind in Python. What it
    returns has to be read before the next call that shares the `pool` of memory. A shape whose capture finds no memory is
    never captured, and runs as it is.
    """

    _compiled: ClassVar[set[tuple[Any, int, int]]] = set()

    def __init__(self, method: Callable[[Tensor, int], Any], stopwatch: Stopwatch, kind: Any, pool: Any = None) -> None:
        self._method = weakref.WeakMethod(method)  # so that a trainer, and the memory of its graphs, is freed when it is done
        self._stopwatch, self._kind = stopwatch, kind
        self._graphs: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, Tensor, list[Any], _Intervals]] = {}
        self.pool = pool or torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()
        self._begun = False
        self._too_large: set[tuple[int, int]] = set()
        self._begun_graphs: list[torch.cuda.CUDAGraph] = []  # PyTorch refuses a pool that had graphs and has none
        self.capturing = False  # stays True where that failed

    def __call__(self, examples: Tensor, width: int) -> Any:
        shape, method = (len(examples), width), self._method()
        assert method is not None
        if not self._begun or (self._kind, *shape) not in self._compiled:
            self._begun = True
            self._compiled.add((self._kind, *shape))
            return self._run(method, examples, width)
        if shape not in self._graphs and shape not in self._too_large:
            given, returned, self.capturing = examples.clone(), [], True
            try:
                with self._stopwatch.capturing() as intervals:
                    graph = self._capture(lambda: returned.append(method(given, width)))
                self._graphs[shape] = graph, given, returned, intervals
            except torch.OutOfMemoryError:
                self._too_large.add(shape)
            self.capturing = False
        if shape in self._too_large:
            return self._run(method, examples, width)
        graph, given, returned, intervals = self._graphs[shape]
        given.copy_(examples)
        graph.replay()
        self._stopwatch.replayed(intervals)
        return returned[0]

    def _run(self, method: Callable[[Tensor, int], Any], examples: Tensor, width: int) -> Any:
        """Without a graph, on the stream that graphs are captured on: what autograd keeps of a stream is right."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            out = method(examples, width)
        torch.cuda.current_stream().wait_stream(self._stream)
        return out

    def _capture(self, function: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """A graph of what a function queues, without waiting for the device, where other runs may be at work."""
        graph, collecting = torch.cuda.CUDAGraph(), gc.isenabled()
        self._begun_graphs.append(graph)
        self._stream.wait_stream(torch.cuda.current_stream())
        gc.disable()  # nothing of other runs is destroyed in between
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
                try:
                    function()
                finally:  # also of one that failed: until then, most that this process does on the device is refused
                    graph.capture_end()
        finally:
            if collecting:
                gc.enable()
        torch.cuda.current_stream().wait_stream(self._stream)  # on which a capture resets the offset of the random numbers
        return graph
