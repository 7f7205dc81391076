"""Records: many arrays behind one pointer, as compiled code sees them."""

import numpy as np
import pytest
import torch

from pullback.inference._numba import records
from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.records import Arrangement, Memory, Record

Inner = Record("Inner", values=(np.float64, 1))
Outer = Record("Outer", first=(np.int64, 1), inner=Inner, square=(np.int32, 2))
Given = Record("Given", limit=int, scores=(np.float32, 2))
outer_of, given_of = Outer.reader, Given.reader


@called
def _add(outer, limit):
    outer.inner.values[1] += limit
    outer.square[1, 2] = outer.square.shape[0]


@no_alloc_kernel
def work(outers, which, givens):
    outer, given = outer_of(outers, which), given_of(givens, 0)
    _add(outer, given.limit)
    outer.first[0] = given.scores[1, 0]


def test_a_kernel_writes_to_the_record_that_is_meant_and_to_no_other():
    memory = Memory(Arrangement(Outer, {"first": (1,), "inner.values": (3,), "square": (2, 5)}, zeros=3), 3)
    scores = torch.arange(6.0).reshape(3, 2)
    work(memory.table, 1, Given.table({"limit": 7, "scores": scores}))
    assert memory.array("first").tolist() == [[0], [2], [0]]
    assert memory.array("inner.values").tolist() == [[0, 0, 0], [0, 7, 0], [0, 0, 0]]
    assert np.argwhere(memory.array("square")).tolist() == [[1, 1, 2]]
    larger = memory.enlarged(Arrangement(Outer, {"first": (1,), "inner.values": (9,), "square": (4, 6)}), {})
    work(larger.table, 1, Given.table({"limit": 1, "scores": scores}))
    assert larger.array("inner.values")[1, :3].tolist() == [0, 8, 0]
    assert larger.array("square")[1, 1, 2] == 4


@pytest.mark.parametrize("scores", [torch.zeros(2, 2).double(), torch.zeros(2, 4)[:, ::2], torch.zeros(4)])
def test_an_array_that_compiled_code_would_misread_is_an_error(scores):
    with pytest.raises(TypeError, match=r"scores is .* needs a contiguous torch.float32 of 2 dimensions"):
        Given.table({"limit": 0, "scores": scores})


def test_a_search_and_its_backward_pass_both_find_their_memory_again(monkeypatch):
    first, second = (Arrangement(Record("Kept", x=(np.float64, 1)), {"x": (size,)}) for size in (8, 16))
    kept = [Memory.kept(each, 2) for each in (first, second)]
    for memory in kept:
        memory.keep()
    assert [Memory.kept(each, 1) for each in (first, second)] == kept
    assert Memory.kept(first, 1) is not kept[0]  # while it is in use
    monkeypatch.setattr(records, "_KEPT", second.size * 2)
    for memory in kept:
        memory.keep()
    assert Memory.kept(second, 1) is kept[1]
    assert Memory.kept(first, 1) is not kept[0]  # there was no room for both
