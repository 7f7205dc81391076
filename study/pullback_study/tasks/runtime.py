"""What training steps run with: their own random numbers, a clock for the inference in them, and CUDA graphs."""

from __future__ import annotations

import contextlib
import gc
import inspect
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pullback.structures import Structure, Wrapper
from pullback_study.runs.files import content_hash
from pullback_study.runs.side_by_side import away
from pullback_study.tasks.methods import Method

Step = Callable[[Tensor, int], None]
"""One update of the parameters: from the examples, int64 `[B]`, and the number of words they are padded to."""
WIDTHS = 4
"""In CUDA graphs, sentences are padded to a multiple of this many words, for few different shapes."""
_Intervals = list[tuple[torch.cuda.Event, torch.cuda.Event]]


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
        """Draw from this run's numbers inside; others continue afterwards as if nothing had been drawn.

        A CUDA graph that is captured inside draws from this run's numbers wherever it is replayed.
        """
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


def wait_for(stream: torch.cuda.Stream) -> None:
    """Wait until a stream is done; other runs of this process go on, and the core is free."""
    event = torch.cuda.Event(blocking=True)
    event.record(stream)
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


@dataclass
class Replays:
    """The intervals inside a CUDA graph, and how often it was replayed since they were last added up."""

    intervals: _Intervals
    count: int = 0


class Stopwatch:
    """Adds up intervals: by the clock on a CPU, by events on a GPU, which nobody waits for before `take`."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._began: Any = None
        self._pending: _Intervals = []
        self._replays: list[Replays] = []

    def start(self) -> None:
        self._began = self._now()

    def stop(self) -> None:
        if self._cuda:
            self._pending.append((self._began, self._now()))
        else:
            self._seconds += self._now() - self._began

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
        seconds, self._seconds = self._seconds + _seconds_of(self._pending), 0.0
        for replays in self._replays:
            seconds += replays.count * _seconds_of(replays.intervals)
            replays.count = 0
        self._replays.clear()
        self._pending.clear()
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
    """A structure whose inference is timed by a stopwatch, in the forward and in the backward pass."""

    def __init__(self, structure: Structure, stopwatch: Stopwatch) -> None:
        super().__init__(structure)
        self._stopwatch = stopwatch

    def around(self, operation: str, inference: Callable[[Tensor], Any], scores: Tensor) -> Any:
        if torch.is_grad_enabled() and scores.requires_grad:
            scores = scores.view_as(scores)
            scores.register_hook(lambda gradient: self._stopwatch.stop())  # the last of its backward pass
        self._stopwatch.start()
        try:
            out = inference(scores)
        finally:
            self._stopwatch.stop()
        if isinstance(out, Tensor) and out.requires_grad:
            out.register_hook(lambda gradient: self._stopwatch.start())  # the first
        return out


class CapturedSteps:
    """A step as one CUDA graph for each shape of a batch, replayed with other examples.

    A small model's step is hundreds of launches, which Python is slow to make. The first step of all, and the first of each
    shape that no step of the same `kind` has had in this process, runs as it is, which compiles what it needs; the next is
    captured. What steps read and change has to stay where it is: parameters, the optimizer's state, a sum of losses. A step
    waits for nothing, and leaves nothing behind in Python.
    """

    _compiled: ClassVar[set[tuple[Any, int, int]]] = set()

    def __init__(self, step: Step, stopwatch: Stopwatch, kind: Any = None) -> None:
        self._step = weakref.WeakMethod(step)  # so that a trainer, and the memory of its graphs, is freed when it is done
        self._stopwatch, self._kind = stopwatch, kind
        self._graphs: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, Tensor, Replays]] = {}
        self.pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()
        self._begun = False
        self.capturing = False  # stays True where that failed

    def __call__(self, examples: Tensor, width: int) -> None:
        shape = len(examples), width
        if not self._begun or (self._kind, *shape) not in self._compiled:
            self._begun = True
            self._compiled.add((self._kind, *shape))
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):  # that graphs are captured on: what autograd keeps of a stream is right
                self._take(examples, width)
            torch.cuda.current_stream().wait_stream(self._stream)
            return
        graph, given, inference = self._graphs.get(shape) or self._capture(shape, examples.clone(), width)
        given.copy_(examples)
        graph.replay()
        self._stopwatch.replayed(inference)

    def _take(self, examples: Tensor, width: int) -> None:
        step = self._step()
        assert step is not None
        step(examples, width)

    def _capture(self, shape: tuple[int, int], examples: Tensor, width: int) -> tuple[torch.cuda.CUDAGraph, Tensor, Replays]:
        self.capturing = True
        with self._stopwatch.capturing() as inference:
            graph = captured(lambda: self._take(examples, width), self._stream, self.pool)
        self.capturing = False
        self._graphs[shape] = graph, examples, inference
        return graph, examples, inference


class CapturedSums:
    """A method that returns numbers, as a CUDA graph: called as it is, then captured, then replayed.

    It shares the memory of a run's steps: read the numbers before the next one.
    """

    def __init__(self, method: Callable[[], Tensor], steps: CapturedSteps) -> None:
        self._method = weakref.WeakMethod(method)
        self._pool = steps.pool
        self._graph: torch.cuda.CUDAGraph | None = None
        self._out: list[Tensor] = []
        self._called = False

    def __call__(self) -> Tensor:
        method = self._method()
        assert method is not None
        if not self._called:
            self._called = True
            return method()
        if self._graph is None:
            stream = torch.cuda.Stream()
            self._graph = captured(lambda: self._out.append(method()), stream, self._pool)
        self._graph.replay()
        return self._out[0]


def captured(function: Callable[[], None], stream: torch.cuda.Stream, pool: Any) -> torch.cuda.CUDAGraph:
    """A graph of what a function queues, without waiting for the device, where other runs may be at work."""
    graph = torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    collecting = gc.isenabled()
    gc.disable()  # nothing of other runs is destroyed in between
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            function()
            graph.capture_end()
    finally:
        if collecting:
            gc.enable()
    torch.cuda.current_stream().wait_stream(stream)  # on which a capture resets the offset of the random numbers
    return graph


def can_be_captured(model: nn.Module, method: Method, config: Any, device: torch.device) -> bool:
    """Whether a training step is the same as a graph: on a GPU, and all that changes is in place.

    Not where the decoder is called again with the same dropout as before, as generators cannot be rewound in a graph; nor
    with an estimator that has a state of its own, such as a moving baseline.
    """
    if device.type != "cuda" or "external" not in inspect.signature(torch.cuda.Event.__new__).parameters:
        return False
    if method.make is None or method.reads_back:
        return method.make is None
    random = any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules())
    estimator = method.build(step_size=1.0, steps=1)
    stateful = estimator is not None and bool(estimator.state_dict())
    return not (random and method.decoder_calls(config.inner_steps or 1) > 1) and not stateful
