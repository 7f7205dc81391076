"""The best projective tree of a sentence of up to 63 words, inside a larger GPU program: Eisner's algorithm, in Triton.

The root is position 0 and word m position m + 1; eisner/README.md names the items. Their scores are `[width, kind, start]`,
with 2^LEVELS starts, so that the kinds of one span are at fixed distances.

The spans of one width are closed together. A warp has S starts beside each other, and its other lanes share the splits: the
best one is found within the warp, and warps wait for each other only once per width.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.eisner.cuda_charts import larger, packed, unpacked
from pullback.inference.sparsemap.cuda_state import length_of
from pullback.inference.sparsemap.cuda_trees import _MULTIROOT as MULTIROOT

_RIGHT, _LEFT, _RIGHT_ARC, _LEFT_ARC = constant(0), constant(1), constant(2), constant(3)
_BEYOND = 65  # widths that tiles of splits reach beyond the last one
_BEHIND = constant(_BEYOND)


@jit(noinline=True)
def best_projective(scores, example, LEVELS: tl.constexpr):
    """The oracle for projective trees of fewer than 2^LEVELS words, at most 64: see cuda_search.py."""
    n, length = example.first, length_of(example)
    charts = _charts(scores, example, LEVELS)
    splits = _splits(example, LEVELS)
    _spans(scores, charts, splits, length, n, example.options & MULTIROOT, LEVELS)
    exists = tl.where(tl.load(charts + (length << (LEVELS + 2))) > float("-inf"), 1, 0)
    if exists > 0:
        _follow(length, n, splits, example, LEVELS)
    return exists


@jit(noinline=True)
def another_projective(scores, example, most, LEVELS: tl.constexpr):
    """After `best_projective`, the best tree with another last child of the root, if it is worse by less than `most`.

    Returns 1, or 0 if there is none.
    """
    n, length = example.first, length_of(example)
    charts = _charts(scores, example, LEVELS)
    splits = _splits(example, LEVELS)
    child = tl.arange(0, 1 << LEVELS)
    real = (child > 0) & (child <= length)
    arc = tl.load(charts + ((4 * child + _RIGHT_ARC) << LEVELS), mask=real, other=float("-inf"))
    value = arc + tl.load(charts + ((4 * (length - child) + _RIGHT) << LEVELS) + child, mask=real, other=0.0)
    best = tl.max(value, 0)
    second, at = tl.max(tl.where(value < best, value, float("-inf")), 0, return_indices=True)
    exists = tl.where(second > best - most, 1, 0)
    if exists > 0:
        gap = tl.load(splits + (length << LEVELS)) & 1023
        tl.store(splits + (length << LEVELS), packed(gap, at - 1, gap))
        tl.debug_barrier()
        _follow(length, n, splits, example, LEVELS)
    return exists


def scratch_of_projective(n: int) -> int:
    """How many float64 it needs: the charts; the splits of each span; and where the items of each position end."""
    return (4 * (n + 2 + 2 * _BEYOND) + (n + 2) // 2 + 1) * 64


@jit()
def _charts(scores, example, LEVELS: tl.constexpr):
    """Where the charts are: behind what tiles reach into, at a place of unknown alignment, or threads would share starts."""
    return example.scratch.to(tl.pointer_type(scores.dtype.element_ty)) + (_BEHIND << (LEVELS + 2)) + example.first


@jit()
def _splits(example, LEVELS: tl.constexpr):
    """Where the splits are: one number for each span, `[width, start]`."""
    splits = example.scratch + ((4 * (example.first + 2 + 2 * _BEHIND)) << LEVELS)
    return splits.to(tl.pointer_type(tl.int32))


@jit()
def _spans(scores, charts, splits, length, n, multiroot, LEVELS: tl.constexpr):
    """Fill the charts. What is not known yet is -inf: a split that is none has such a part, so it is never better than another.

    Its other part may be anything, as the larger of NaN and a number is the number.
    """
    positions: tl.constexpr = 1 << LEVELS
    warps: tl.constexpr = 1 << min(LEVELS - 3, 2)
    count = 4 * positions * (length + 1 + _BEHIND)
    for first in range(0, count, 512 * warps):
        at = first + tl.arange(0, 512 * warps)
        start, empty = at % positions, (at < 2 * positions)
        value = tl.where(empty & (start <= length), 0.0, tl.full([512 * warps], float("-inf"), charts.dtype.element_ty))
        tl.store(charts + at, value, mask=at < count)
    tl.debug_barrier()
    half = tl.maximum(length + 1 - positions // 2, 1)  # the first width with so many spans at most
    quarter = tl.maximum(length + 1 - positions // 4, 1)
    for width in range(1, half):
        _close(scores, charts, splits, width, length, n, multiroot, warps, positions // warps, LEVELS)
        tl.debug_barrier()
    for width in range(half, quarter):
        _close(scores, charts, splits, width, length, n, multiroot, warps, positions // warps // 2, LEVELS)
        tl.debug_barrier()
    for width in range(quarter, length + 1):
        _close(scores, charts, splits, width, length, n, multiroot, warps, positions // warps // 4, LEVELS)
        tl.debug_barrier()


@jit()
def _close(
    scores, charts, splits, width, length, n, multiroot, WARPS: tl.constexpr, S: tl.constexpr, LEVELS: tl.constexpr
):  # fmt: skip
    """Write the items of the spans of a width, and their splits."""
    groups: tl.constexpr = 32 // S
    group = tl.arange(0, groups)[:, None, None]
    start = tl.arange(0, WARPS)[None, :, None] * S + tl.arange(0, S)[None, None, :] + 0 * group
    word = start + width - 1
    real = word < length
    down, up = scores + tl.where(start == 0, word, start - 1) * n + word, scores + word * n + start - 1
    down = tl.load(tl.max_contiguous(down, [1, 1, S]), mask=real, other=float("-inf"))
    up = tl.load(tl.max_contiguous(up, [1, 1, S]), mask=real & (start > 0), other=float("-inf"))
    rows: tl.constexpr = (1 << LEVELS) // (2 * WARPS)
    gap, gap_at, right, right_at, left, left_at = _best(charts, start, real, group, width, groups, rows, LEVELS)
    down, up = gap + down, gap + up
    right_at, left_at = tl.where(down > right, width - 1, right_at), tl.where(left > up, left_at + 1, 0)
    open_end = (start > 0) | (multiroot != 0) | (width == length)  # no gap between two children of the root
    right = tl.where(open_end, tl.maximum(down, right), float("-inf"))
    real = real & (group == 0)
    at = charts + (width << (LEVELS + 2)) + start
    tl.store(at + (_RIGHT << LEVELS), right, mask=real)
    tl.store(at + (_LEFT << LEVELS), tl.maximum(up, left), mask=real)
    tl.store(at + (_RIGHT_ARC << LEVELS), down, mask=real)
    tl.store(at + (_LEFT_ARC << LEVELS), up, mask=real)
    tl.store(splits + (width << LEVELS) + start, packed(gap_at, right_at, left_at), mask=real)


@jit()
def _best(charts, start, real, group, width, GROUPS: tl.constexpr, ROWS: tl.constexpr, LEVELS: tl.constexpr):
    """The best sums for the gap, right and left of spans, and their splits: those of each lane, then of a warp's."""
    row = tl.arange(0, ROWS)[None, None, :, None] * GROUPS + (group + 0 * start)[:, :, None, :]
    start, real = start[:, :, None, :] + 0 * row, real[:, :, None, :] & (row >= 0)
    gap = tl.full(row.shape, float("-inf"), charts.dtype.element_ty)
    gap_at = row
    right, left, right_at, left_at = gap, gap, row, row
    near = (row << (LEVELS + 2)) + start
    far = ((width - 1 - row) << (LEVELS + 2)) + start + row + 1
    for first in range(0, width, ROWS * GROUPS):
        split = row + first
        # an arc of the span itself is not there yet, so it is not the last of these
        right_near, left_far = tl.load(charts + near, mask=real), tl.load(charts + (_LEFT << LEVELS) + far, mask=real)
        arc_near, right_far = tl.load(charts + ((4 + _RIGHT_ARC) << LEVELS) + near, mask=real), tl.load(charts + far, mask=real)
        left_near = tl.load(charts + ((4 + _LEFT) << LEVELS) + near, mask=real)
        arc_far = tl.load(charts + (_LEFT_ARC << LEVELS) + far, mask=real)
        gap, gap_at = _better(right_near + left_far, split, gap, gap_at)
        right, right_at = _better(arc_near + right_far, split, right, right_at)
        left, left_at = _better(left_near + arc_far, split, left, left_at)
        near += ROWS * GROUPS << (LEVELS + 2)
        far -= (ROWS * GROUPS << (LEVELS + 2)) - ROWS * GROUPS
    found = tl.reduce((gap, gap_at, right, right_at, left, left_at), 2, larger)
    return tl.reduce(found, 0, larger, keep_dims=True)


@jit()
def _better(sums, split, best, at):
    """The better of the best sums so far and other sums, with their splits; of equal ones the first."""
    return tl.maximum(sums, best), tl.where(sums > best, split, at)


@jit()
def _follow(length, n, splits, example, LEVELS: tl.constexpr):
    """Build the tree from the top: in a round every position that has one finds its outermost child on either side.

    A position knows where its right item ends and where its left item starts; it tells the child its own. A message bears
    the number of its round, and rounds take turns with the two halves of `told`: so one barrier a round is enough, as
    nobody writes to a half before all have read what they were told there.
    """
    positions: tl.constexpr = 1 << LEVELS
    bits: tl.constexpr = LEVELS + 1
    told = splits + ((n + 1) << LEVELS)
    at = tl.arange(0, positions)
    inside = at <= length
    tl.store(told + at, tl.full([positions], -1, tl.int32))
    tl.store(told + positions + at, tl.full([positions], -1, tl.int32))
    tl.debug_barrier()
    above, left, right = at, at, tl.where(at == 0, length, at)
    turn, going = length * 0, length
    while going > 0:
        for half in tl.static_range(2):  # two rounds for each look at whether there is more to do
            down, up = inside & (right > at), inside & (left < at)
            child = at + 1 + unpacked(splits, ((right - at) << LEVELS) + at, down, 1)
            left_child = left + unpacked(splits, ((at - left) << LEVELS) + left, up, 2)
            gap = at + unpacked(splits, ((child - at) << LEVELS) + at, down, 0)
            left_gap = left_child + unpacked(splits, ((at - left_child) << LEVELS) + left_child, up, 0)
            sender = ((turn << bits) + at) << (2 * bits)
            tl.store(told + half * positions + child, sender + ((right << bits) + gap + 1), mask=down)
            tl.store(told + half * positions + left_child, sender + ((left_gap << bits) + left), mask=up)
            tl.debug_barrier()
            message = tl.load(told + half * positions + at)
            new = (message >> (3 * bits)) == turn
            above = tl.where(new, (message >> (2 * bits)) & ((1 << bits) - 1), above)
            right = tl.where(new, (message >> bits) & ((1 << bits) - 1), tl.where(down, gap, right))
            left = tl.where(new, message & ((1 << bits) - 1), tl.where(up, left_gap + 1, left))
            turn += 1
        going = tl.max((inside & ((right > at) | (left < at))).to(tl.int32), 0)
    arc = tl.where(above == 0, at - 1, above - 1) * n + at - 1
    tl.store(example.found + at - 1, tl.where(inside, arc, -1), mask=(at > 0) & (at <= n))
