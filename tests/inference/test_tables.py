"""Tables of shapes are kept as long as they fit into some memory, and those used last longest."""

from __future__ import annotations

import os
import signal
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import pullback as pb
from pullback.inference.engine.hypergraph import tables


@pytest.fixture
def table(monkeypatch):
    """A function from a number of bytes to a table of that size; and the numbers for which one was made."""
    monkeypatch.setattr(tables, "ROOM", 100)
    made = []

    @tables.remembered
    def make(size, name=""):
        made.append((size, name))
        return types.SimpleNamespace(array=np.zeros(size, np.int8), tensor=torch.zeros(0), count=size)

    return make, made


def test_what_fits_is_made_once(table):
    make, made = table
    assert len({id(make(size)) for size in (10, 20, 30, 40) * 3}) == 4
    assert made == [(10, ""), (20, ""), (30, ""), (40, "")]


def test_options_tell_tables_apart(table):
    make, made = table
    assert make(10, name="a") is not make(10, name="b")
    assert make(10, name="a") is make(10, name="a")
    assert made == [(10, "a"), (10, "b")]


def test_what_was_used_last_stays(table):
    make, made = table
    first = make(50)
    make(40)
    assert make(50) is first
    make(30)  # takes the place of the 40
    assert make(50) is first
    make(40)
    assert made == [(50, ""), (40, ""), (30, ""), (40, "")]


def test_a_table_larger_than_the_memory_stays_until_the_next(table):
    make, made = table
    assert make(500) is make(500)
    make(10)
    make(500)
    assert made == [(500, ""), (10, ""), (500, "")]


def test_threads_get_the_same_table(table):
    make, _ = table
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: make(60), range(64)))
    assert len({id(make(60)) for _ in range(3)}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_while_a_thread_looks_up_a_table_does_not_wait_for_that_thread(table):
    make, _ = table
    held, done = threading.Event(), threading.Event()

    class Slow:
        def __hash__(self):
            if threading.current_thread() is not threading.main_thread():
                held.set()
                done.wait(10)
            return 1

        def __eq__(self, other):
            return self is other

    thread = threading.Thread(target=make, args=(10, Slow()))
    thread.start()
    assert held.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        make(20)
        os._exit(0)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_many_shapes_in_turn_give_what_each_gives_alone(monkeypatch):
    """With so little memory that no table stays."""
    monkeypatch.setattr(tables, "ROOM", 0)
    scores = [torch.randn(2, n, 3, 2, generator=torch.Generator().manual_seed(n)) for n in (2, 5, 3)]
    structure = pb.Segmentation()
    expected = [structure.entropy(s) for s in scores]
    for _ in range(2):
        for s, value in zip(scores, expected, strict=True):
            assert torch.equal(structure.entropy(s), value)
