"""Training steps replayed from CUDA graphs: a small model's step is hundreds of launches, which Python is slow to make."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pullback_study.tasks.latent.timing import Replays, Stopwatch
from pullback_study.tasks.methods import Method

Step = Callable[[Tensor, int], None]
"""One update of the parameters: from the examples, int64 `[B]`, and the number of words they are padded to."""
WIDTHS = 4
"""Sentences are padded to a multiple of this many words, for few different shapes."""


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    examples: Tensor
    inference: Replays


class CapturedSteps:
    """A step as one CUDA graph for each shape of a batch, replayed with other examples.

    The first step of a shape runs as it is, which compiles what it needs; the second is captured. What steps read and change
    has to stay where it is: parameters, the optimizer's state, a sum of losses.

    Args:
        step: waits for nothing, and leaves nothing behind in Python.
        stopwatch: times the inference inside.
    """

    def __init__(self, step: Step, stopwatch: Stopwatch) -> None:
        self._step = step
        self._stopwatch = stopwatch
        self._graphs: dict[tuple[int, int], _Graph] = {}
        self._seen: set[tuple[int, int]] = set()
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()

    def __call__(self, examples: Tensor, width: int) -> None:
        shape = len(examples), width
        if shape not in self._seen:
            self._seen.add(shape)
            self._run(examples, width)
            return
        if shape not in self._graphs:
            self._graphs[shape] = self._capture(examples, width)
        captured = self._graphs[shape]
        captured.examples.copy_(examples)
        captured.graph.replay()
        self._stopwatch.replayed(captured.inference)

    def _run(self, examples: Tensor, width: int) -> None:
        """Once, on the stream that graphs are captured on: what autograd keeps of a stream is then right for those."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._step(examples, width)
        torch.cuda.current_stream().wait_stream(self._stream)

    def _capture(self, examples: Tensor, width: int) -> _Graph:
        graph, examples = torch.cuda.CUDAGraph(), examples.clone()
        with self._stopwatch.capturing() as inference, torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            self._step(examples, width)
        return _Graph(graph, examples, inference)


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
