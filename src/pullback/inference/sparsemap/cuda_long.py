"""The best projective tree of a sentence of any length, inside a larger GPU program: Eisner's algorithm, in Triton.

The root is position 0 and word m position m + 1; eisner/README.md names the items. Charts and splits are `[width, start]`.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_state import length_of
from pullback.inference.sparsemap.cuda_trees import _MULTIROOT as MULTIROOT
from pullback.inference.triton_support import constant, jit, tl

_STARTS, _SPLITS = constant(64), constant(16)  # looked at together


@jit(noinline=True)
def best_long(scores, example, LEVELS: tl.constexpr):
    """The oracle for projective trees of any length: see cuda_search.py."""
    n, length = example.first, length_of(example)
    charts = example.scratch.to(tl.pointer_type(scores.dtype.element_ty))
    splits = (example.scratch + 4 * (n + 1) * (n + 1)).to(tl.pointer_type(tl.int16))
    best = _spans(scores, length, n, example.options & MULTIROOT, charts, splits)
    exists = tl.where(best > float("-inf"), 1, 0)
    if exists > 0:
        _follow(length, n, splits, example)
    return exists


def scratch_of_long(n: int) -> int:
    """How many float64 it needs: charts of right, left, right_arc and left_arc, splits of the gaps, of right and of left, and
    of each position where its right item ends and where its left item starts.
    """
    return 4 * (n + 1) ** 2 + (3 * (n + 1) ** 2 + 3) // 4 + n + 1


@jit()
def _spans(scores, length, n, multiroot, charts, splits):
    """Fill the charts; returns the score of the best tree."""
    pitch = n + 1
    size = pitch * pitch
    for first in range(0, length + 1, _STARTS):
        start = first + tl.arange(0, _STARTS)
        tl.store(charts + start, tl.zeros([_STARTS], charts.dtype.element_ty), mask=start <= length)
        tl.store(charts + size + start, tl.zeros([_STARTS], charts.dtype.element_ty), mask=start <= length)
    tl.debug_barrier()
    for width in range(1, length + 1):
        for first in range(0, length + 1 - width, _STARTS):
            start = first + tl.arange(0, _STARTS)
            real = start + width <= length
            gap, gap_at, right, right_at, left, left_at = _best_splits(charts, start, real, width, pitch, multiroot)
            down, up = arcs_of(scores, start, width, length, n)
            down, up = gap + down, gap + up
            at = width * pitch + start
            tl.store(charts + at, tl.maximum(down, right), mask=real)
            tl.store(charts + size + at, tl.maximum(up, left), mask=real)
            tl.store(charts + 2 * size + at, down, mask=real)
            tl.store(charts + 3 * size + at, up, mask=real)
            tl.store(splits + at, gap_at.to(tl.int16), mask=real)
            tl.store(splits + size + at, tl.where(down > right, width - 1, right_at).to(tl.int16), mask=real)
            tl.store(splits + 2 * size + at, tl.where(left > up, left_at + 1, 0).to(tl.int16), mask=real)
        tl.debug_barrier()
    return tl.load(charts + length * pitch)


@jit()
def _best_splits(charts, start, real, width, pitch, multiroot):
    """For the spans of a width that begin at a block of starts, the best sums for the gap, right and left, and their splits."""
    size = pitch * pitch
    gap = tl.full([_STARTS], float("-inf"), charts.dtype.element_ty)
    gap_at = tl.zeros([_STARTS], tl.int32)
    right, left, right_at, left_at = gap, gap, gap_at, gap_at
    for first in range(0, width, _SPLITS):
        split = (first + tl.arange(0, _SPLITS))[:, None]
        near = charts + split * pitch + start[None, :]
        far = charts + (width - 1 - split) * pitch + start[None, :] + split + 1
        used = (split < width) & real[None, :]
        open_gap = used & ((split == 0) | (start[None, :] > 0) | (multiroot != 0))
        older = (split < width - 1) & real[None, :]  # the arc of the span itself is not there yet
        gap, gap_at = _better(near, far + size, open_gap, first, gap, gap_at)
        right, right_at = _better(near + 2 * size + pitch, far, older, first, right, right_at)
        left, left_at = _better(near + size + pitch, far + 3 * size, older, first, left, left_at)
    return gap, gap_at, right, right_at, left, left_at


@jit()
def _better(near, far, mask, first, best, at):
    """The better of the best sum so far and the best of a tile of sums."""
    nothing = float("-inf")
    sums = tl.load(near, mask=mask, other=nothing) + tl.load(far, mask=mask, other=nothing)
    value, row = tl.max(sums, 0, return_indices=True)
    return tl.maximum(value, best), tl.where(value > best, first + row, at)


@jit()
def arcs_of(scores, start, width, length, n):
    """The scores of the arcs of spans of a width: from the start to the end, and from the end to the start."""
    word = start + width - 1
    real = word < length
    down = tl.load(scores + tl.where(start == 0, word, start - 1) * n + word, mask=real, other=float("-inf"))
    up = tl.load(scores + word * n + start - 1, mask=real & (start > 0), other=float("-inf"))
    return down, up


@jit()
def _follow(length, n, splits, example):
    """Build the tree from the top: in a round every position that has one finds its outermost child on either side."""
    pitch = n + 1
    ends = example.scratch.to(tl.pointer_type(tl.int32)) + 8 * pitch * pitch + (3 * pitch * pitch + 3) // 4 * 2
    for first in range(0, n + 1, _STARTS):
        at = first + tl.arange(0, _STARTS)
        tl.store(ends + at, tl.where(at == 0, length, at), mask=at <= length)
        tl.store(ends + pitch + at, at, mask=at <= length)
        tl.store(example.found + at, tl.full([_STARTS], -1, tl.int32), mask=(at >= length) & (at < n))
    tl.debug_barrier()
    going = length
    while going > 0:
        going = 0
        for first in range(0, length + 1, _STARTS):
            at = first + tl.arange(0, _STARTS)
            going += _follow_some(at, length, n, splits, ends, example)


@jit()
def _follow_some(at, length, n, splits, ends, example):
    """One round for a block of positions; returns how many have found a child."""
    pitch = n + 1
    inside = at <= length
    right, left = tl.load(ends + at, mask=inside, other=0), tl.load(ends + pitch + at, mask=inside, other=0)
    tl.debug_barrier()
    down, up = inside & (right > at), inside & (left < at)
    child = at + 1 + tl.load(splits + pitch * pitch + (right - at) * pitch + at, mask=down, other=0).to(tl.int32)
    gap = at + tl.load(splits + (child - at) * pitch + at, mask=down, other=0).to(tl.int32)
    head = tl.where(at == 0, child - 1, at - 1)
    tl.store(example.found + child - 1, head * n + child - 1, mask=down)
    tl.store(ends + child, right, mask=down)
    tl.store(ends + pitch + child, gap + 1, mask=down)
    tl.store(ends + at, gap, mask=down)

    child = left + tl.load(splits + 2 * pitch * pitch + (at - left) * pitch + left, mask=up, other=0).to(tl.int32)
    gap = child + tl.load(splits + (at - child) * pitch + child, mask=up, other=0).to(tl.int32)
    tl.store(example.found + child - 1, (at - 1) * n + child - 1, mask=up)
    tl.store(ends + child, gap, mask=up)
    tl.store(ends + pitch + child, left, mask=up)
    tl.store(ends + pitch + at, gap + 1, mask=up)
    tl.debug_barrier()
    return tl.sum((down | up).to(tl.int32), 0)
