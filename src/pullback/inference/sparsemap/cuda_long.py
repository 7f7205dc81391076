"""The best projective tree of a sentence of any length, inside a larger GPU program: Eisner's algorithm, in Triton.

The root is position 0 and word m position m + 1; eisner/README.md names the items. Charts and splits are `[width, start]`.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.eisner.cuda_charts import larger
from pullback.inference.sparsemap.cuda_state import length_of
from pullback.inference.sparsemap.cuda_trees import _MULTIROOT as MULTIROOT


@jit(noinline=True)
def best_long(scores, example, LEVELS: tl.constexpr):
    """The oracle for projective trees of any length, 2^LEVELS positions at a time: see cuda_search.py."""
    n, length = example.first, length_of(example)
    charts = example.scratch.to(tl.pointer_type(scores.dtype.element_ty))
    splits = (example.scratch + _numbers(n, LEVELS)).to(tl.pointer_type(tl.int16))
    best = _spans(scores, length, n, example.options & MULTIROOT, charts, splits, LEVELS)
    exists = tl.where(best > float("-inf"), 1, 0)
    if exists > 0:
        _follow(length, n, splits, example, LEVELS)
    return exists


def scratch_of_long(n: int) -> int:
    """How many float64 it needs: charts of right, left, right_arc and left_arc, with rows around them that tiles reach into;
    splits of the gaps, of right and of left; and of each position where its right item ends and its left starts.
    """
    more = 32  # rows: 2^(LEVELS - 1)
    return 4 * (n + 1) * (n + 1 + more) + 2 * (n + 5) * more + (3 * (n + 1) ** 2 + 3) // 4 + n + 1


@jit()
def _numbers(n, LEVELS: tl.constexpr):
    """How many numbers the charts have, with what tiles reach into before and behind them."""
    return 4 * _size(n, LEVELS) + 2 * (n + 5) * (1 << (LEVELS - 1))


@jit()
def _size(n, LEVELS: tl.constexpr):
    """How many numbers a chart has: a tile reaches that many rows beyond the last one."""
    return (n + 1) * (n + 1 + (1 << (LEVELS - 1)))


@jit()
def _spans(scores, length, n, multiroot, charts, splits, LEVELS: tl.constexpr):
    """Fill the charts; returns the score of the best tree.

    What is not known yet, or is no item, is -inf. So tiles need no masks: a split that is none has a part that is not known.
    """
    pitch, size = n + 1, _size(n, LEVELS)
    starts: tl.constexpr = 1 << LEVELS
    fewer: tl.constexpr = 1 << (LEVELS - 1)
    count = _numbers(n, LEVELS)
    for first in range(0, count, 16 * starts):
        at = first + tl.arange(0, 16 * starts)
        tl.store(charts + at, tl.full([16 * starts], float("-inf"), charts.dtype.element_ty), mask=at < count)
    tl.debug_barrier()
    charts += (n + 5) * fewer
    for first in range(0, length + 1, starts):
        start = first + tl.arange(0, starts)
        tl.store(charts + start, tl.zeros([starts], charts.dtype.element_ty), mask=start <= length)
        tl.store(charts + size + start, tl.zeros([starts], charts.dtype.element_ty), mask=start <= length)
    tl.debug_barrier()
    wide = tl.maximum(length + 1 - fewer, 1)  # a width with so many spans at most
    for width in range(1, wide):
        for first in range(0, length + 1 - width, starts):
            _close_spans(scores, charts, splits, size, first, width, length, n, multiroot, starts // 4, starts)
        tl.debug_barrier()
    for width in range(wide, length + 1):
        _close_spans(scores, charts, splits, size, 0, width, length, n, multiroot, fewer, fewer)
        tl.debug_barrier()
    return tl.load(charts + length * pitch)


@jit()
def _close_spans(
    scores, charts, splits, size, first, width, length, n, multiroot, SPLITS: tl.constexpr, STARTS: tl.constexpr
):  # fmt: skip
    """Write the items of the spans of a width that begin at a block of starts, and their splits."""
    pitch = n + 1
    area = pitch * pitch
    start = first + tl.arange(0, STARTS)
    real = start + width <= length
    down, up = arcs_of(scores, start, width, length, n)
    gap, gap_at, right, right_at, left, left_at = _best_splits(charts, size, start, width, pitch, SPLITS, STARTS)
    down, up = gap + down, gap + up
    at = width * pitch + start
    open_end = (start > 0) | (multiroot != 0) | (width == length)  # no gap between two children of the root
    tl.store(charts + at, tl.where(open_end, tl.maximum(down, right), float("-inf")), mask=real)
    tl.store(charts + size + at, tl.maximum(up, left), mask=real)
    tl.store(charts + 2 * size + at, down, mask=real)
    tl.store(charts + 3 * size + at, up, mask=real)
    tl.store(splits + at, gap_at.to(tl.int16), mask=real)
    tl.store(splits + area + at, tl.where(down > right, width - 1, right_at).to(tl.int16), mask=real)
    tl.store(splits + 2 * area + at, tl.where(left > up, left_at + 1, 0).to(tl.int16), mask=real)


@jit()
def _best_splits(charts, size, start, width, pitch, SPLITS: tl.constexpr, STARTS: tl.constexpr):
    """The best sums for the gap, right and left of spans, and their splits: those of each row of a tile, then of all rows."""
    row = tl.broadcast_to(tl.arange(0, SPLITS)[:, None], [SPLITS, STARTS])
    near = row * pitch + start[None, :]
    far = (width - 1 - row) * pitch + start[None, :] + row + 1
    gap = tl.full([SPLITS, STARTS], float("-inf"), charts.dtype.element_ty)
    gap_at = tl.zeros([SPLITS, STARTS], tl.int32)
    right, left, right_at, left_at = gap, gap, gap_at, gap_at
    # the arc of the span itself is not there yet, so it is not the last of these
    lefts, left_arcs = charts + size, charts + 3 * size
    right_arcs, longer_lefts = charts + 2 * size + pitch, lefts + pitch
    for first in range(0, width, SPLITS):
        gap, gap_at = _better(tl.load(charts + near) + tl.load(lefts + far), first, gap, gap_at)
        right, right_at = _better(tl.load(right_arcs + near) + tl.load(charts + far), first, right, right_at)
        left, left_at = _better(tl.load(longer_lefts + near) + tl.load(left_arcs + far), first, left, left_at)
        near += SPLITS * pitch
        far -= SPLITS * (pitch - 1)
    return tl.reduce((gap, gap_at + row, right, right_at + row, left, left_at + row), 0, larger)


@jit()
def _better(sums, first, best, at):
    """The better of the best sums so far and other sums, with the first split of their tile; of equal ones the first."""
    return tl.maximum(sums, best), tl.where(sums > best, first, at)


@jit()
def arcs_of(scores, start, width, length, n):
    """The scores of the arcs of spans of a width: from the start to the end, and from the end to the start."""
    word = start + width - 1
    real = word < length
    down = tl.load(scores + tl.where(start == 0, word, start - 1) * n + word, mask=real, other=float("-inf"))
    up = tl.load(scores + word * n + start - 1, mask=real & (start > 0), other=float("-inf"))
    return down, up


@jit()
def _follow(length, n, splits, example, LEVELS: tl.constexpr):
    """Build the tree from the top: in a round every position that has one finds its outermost child on either side."""
    pitch = n + 1
    ends = example.scratch.to(tl.pointer_type(tl.int32)) + 2 * _numbers(n, LEVELS) + (3 * pitch * pitch + 3) // 4 * 2
    for first in range(0, n + 1, 1 << LEVELS):
        at = first + tl.arange(0, 1 << LEVELS)
        tl.store(ends + at, tl.where(at == 0, length, at), mask=at <= length)
        tl.store(ends + pitch + at, at, mask=at <= length)
        tl.store(example.found + at, tl.full([1 << LEVELS], -1, tl.int32), mask=(at >= length) & (at < n))
    tl.debug_barrier()
    going = length
    while going > 0:
        going = 0
        for first in range(0, length + 1, 1 << LEVELS):
            at = first + tl.arange(0, 1 << LEVELS)
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
