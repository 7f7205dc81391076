"""CUDA graphs of steps: what becomes of a capture that finds no memory."""

import contextlib
from typing import ClassVar
from unittest import mock
from weakref import WeakSet

import pytest
import torch

from pullback_study.tasks import runtime
from pullback_study.tasks.runtime import Captured, Stopwatch

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Doubling:
    """A step that needs too much memory while it is captured, for sentences of 3 words."""

    def __init__(self, capturing):
        self.capturing = capturing

    def step(self, examples, width):
        if self.capturing() and width == 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return width * examples


class Graph:
    """Stands for a CUDA graph: one is captured at a time, and a replay does nothing.

    As with PyTorch's, a pool of memory that had graphs cannot be used once all of them are gone.
    """

    underway: ClassVar["Graph | None"] = None
    pools: ClassVar[dict] = {}

    def capture_begin(self, pool, **_):
        assert Graph.underway is None
        assert pool not in self.pools or len(self.pools[pool]), "a pool without graphs"
        self.pools.setdefault(pool, WeakSet()).add(self)
        Graph.underway = self

    def capture_end(self):
        assert Graph.underway is self
        Graph.underway = None

    def replay(self):
        assert Graph.underway is None


@pytest.fixture
def pretended(monkeypatch):
    """CUDA's calls of `runtime`, without a GPU."""
    cuda = mock.MagicMock(CUDAGraph=Graph, stream=lambda _: contextlib.nullcontext())
    monkeypatch.setattr(runtime.torch, "cuda", cuda)
    monkeypatch.setattr(Captured, "_compiled", set())
    return cuda


@pytest.mark.usefixtures("pretended")
def test_a_capture_without_memory_is_ended_and_its_shape_runs_as_it_is():
    steps = Doubling(lambda: Graph.underway is not None)
    captured, two = Captured(steps.step, Stopwatch(torch.device("cpu")), "kind"), torch.tensor([2.0])
    assert [captured(two, width).item() for width in (3, 2, 3, 2, 3, 2)] == [6, 4, 6, 4, 6, 4]
    assert list(captured._graphs) == [(1, 2)]
    assert not captured.capturing


@on_gpu
def test_the_device_works_on_after_a_capture_without_memory():
    def capturing():
        if torch.cuda.is_current_stream_capturing():
            torch.empty(2**24, device="cuda")  # of the pool, and given back
            torch.empty(2**50, device="cuda")
        return False

    steps, examples = Doubling(capturing), torch.ones(4, device="cuda")
    captured = Captured(steps.step, Stopwatch(torch.device("cuda")), "none is captured")
    assert [captured(examples, 2).sum().item() for _ in range(3)] == [8, 8, 8]
    torch.cuda.synchronize()
    steps.capturing = lambda: False
    assert [captured(examples, 4).sum().item() for _ in range(3)] == [16, 16, 16]
    assert list(captured._graphs) == [(4, 4)]
