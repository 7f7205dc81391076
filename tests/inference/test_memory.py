"""Memory of large results is used again, but not while anything refers to it."""

from __future__ import annotations

import threading

import torch

from pullback import LinearChain
from pullback.inference._numba import memory
from pullback.inference._numba.memory import LARGE, MOST, empty, empty_like


def test_results_keep_their_values_while_a_view_of_them_lives():
    scores = torch.randn(8, 20, 50, 50, generator=torch.Generator().manual_seed(0))
    assert scores.numel() * scores.itemsize >= LARGE
    chain = LinearChain()
    first = chain.marginals(scores)
    row, copy = first[3], first[3].clone()
    detached = first.detach()[5:]
    others = [chain.marginals(-scores * k) for k in range(4)]
    del first
    others += [chain.argmax(scores + k) for k in range(4)]
    assert row.equal(copy)
    assert detached.equal(chain.marginals(scores)[5:])
    assert len({x.data_ptr() for x in others}) == len(others)


def test_memory_is_used_again_once_nothing_refers_to_it():
    x = torch.zeros(LARGE)
    place = empty_like(x).data_ptr()
    assert empty_like(x).data_ptr() == place
    assert empty_like(x).data_ptr() % 64 == 0


def test_memory_of_another_shape_and_dtype_is_used_again_if_it_fits(monkeypatch):
    monkeypatch.setattr(memory, "_kept", [])
    first = empty((3, LARGE), torch.float32)
    place, view = first.data_ptr(), first[1:]
    del first
    second = empty((LARGE, 2), torch.float32)
    assert second.data_ptr() != place  # as there is a view
    del view
    third = empty((LARGE, 1), torch.float64)
    assert (third.data_ptr(), third.shape, third.dtype) == (place, (LARGE, 1), torch.float64)
    del third
    assert empty((LARGE,), torch.float32).data_ptr() != place  # which would waste more than half of it


def test_small_and_very_large_results_are_not_kept(monkeypatch):
    monkeypatch.setattr(memory, "_kept", [])
    for x in (torch.zeros(3, 2), torch.empty(MOST // 4 + 1)):
        assert empty_like(x).shape == x.shape
        assert not memory._kept


def test_threads_do_not_share_memory():
    x, found = torch.zeros(LARGE // 4), []
    threads = [threading.Thread(target=lambda: found.extend(empty_like(x) for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({y.data_ptr() for y in found}) == 20
