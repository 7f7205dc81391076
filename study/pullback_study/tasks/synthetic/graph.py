"""A training step as a CUDA graph: launched at once instead of kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch

_WARM_UP = 3


class Graphed:
    """A captured `step`: each call replays its kernels on the same memory.

    `step` takes and returns nothing: it reads and updates tensors in place, always the same ones, never waits for the
    device, and does the same work each time. Capturing runs it a few times first: the caller puts its state back.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step()

    def __call__(self) -> None:
        self._graph.replay()
