"""The best projective tree of a sentence of any length, inside a larger GPU program: Eisner's algorithm, in Triton.

The root is position 0 and word m position m + 1; eisner/README.md names the items. Charts and splits are `[width, start]`.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_short import arcs_of
from pullback.inference.triton_support import jit, tl


@jit()
def best_tree(
    scores, length, n, multiroot, heads, splits, charts, ends, SPLITS: tl.constexpr, POSITIONS: tl.constexpr
):  # fmt: skip
    """Write the heads of the tree of largest score.

    Args:
        scores: `[n, n]`, packed: head x modifier, the root on the diagonal; finite or -inf among the words.
        length: the number of words, from 1 to n.
        n: the pitch of the scores, less than POSITIONS.
        multiroot: whether several words may attach to the root.
        heads: `[n]`, int16, to write if there is a tree: a word's own index is the root, -1 padding.
        splits: scratch, `[3, n + 1, n + 1]`, int16: of the gaps, of right and of left.
        charts: scratch, `[4, n + 1, n + 1]`, of the scores' precision: of right, left, right_arc and left_arc.
        ends: scratch, `[2, n + 1]`, int32: where each position's right item ends, and where its left item starts.
        SPLITS: how many are looked at together, for all spans of a width.
        POSITIONS: a power of two.

    Returns:
        1, or 0 if there is no tree.
    """
    best = _spans(scores, length, n, multiroot, charts, splits, SPLITS, POSITIONS)
    exists = tl.where(best > float("-inf"), 1, 0)
    if exists > 0:
        _follow(length, n, splits, ends, heads, POSITIONS)
    return exists


@jit()
def _spans(scores, length, n, multiroot, charts, splits, SPLITS: tl.constexpr, POSITIONS: tl.constexpr):
    """Fill the charts; returns the score of the best tree."""
    pitch = n + 1
    size = pitch * pitch
    start = tl.arange(0, POSITIONS)
    inside = start <= length
    tl.store(charts + start, tl.zeros([POSITIONS], charts.dtype.element_ty), mask=inside)
    tl.store(charts + size + start, tl.zeros([POSITIONS], charts.dtype.element_ty), mask=inside)
    tl.debug_barrier()
    for width in range(1, length + 1):
        end = start + width
        real = end <= length
        gap = tl.full([POSITIONS], float("-inf"), charts.dtype.element_ty)
        gap_at = tl.zeros([POSITIONS], tl.int32)
        right, left, right_at, left_at = gap, gap, gap_at, gap_at
        for first in range(0, width, SPLITS):
            split = (first + tl.arange(0, SPLITS))[:, None]
            near = charts + split * pitch + start[None, :]
            far = charts + (width - 1 - split) * pitch + start[None, :] + split + 1
            used = (split < width) & real[None, :]
            open_gap = used & ((split == 0) | (start[None, :] > 0) | (multiroot != 0))
            older = (split < width - 1) & real[None, :]  # the arc of the span itself is not there yet
            gap, gap_at = _better(near, far + size, open_gap, first, gap, gap_at)
            right, right_at = _better(near + 2 * size + pitch, far, older, first, right, right_at)
            left, left_at = _better(near + size + pitch, far + 3 * size, older, first, left, left_at)
        down, up = arcs_of(scores, width, length, n, POSITIONS)
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
def _better(near, far, mask, first, best, at):
    """The better of the best sum so far and the best of a tile of sums."""
    nothing = float("-inf")
    sums = tl.load(near, mask=mask, other=nothing) + tl.load(far, mask=mask, other=nothing)
    value, row = tl.max(sums, 0, return_indices=True)
    return tl.maximum(value, best), tl.where(value > best, first + row, at)


@jit()
def _follow(length, n, splits, ends, heads, POSITIONS: tl.constexpr):
    """Build the tree from the top: in a round every position that has one finds its outermost child on either side."""
    pitch = n + 1
    at = tl.arange(0, POSITIONS)
    inside = at <= length
    right = tl.where(at == 0, length, at)
    left = at
    tl.store(ends + at, right, mask=inside)
    tl.store(ends + pitch + at, left, mask=inside)
    tl.store(heads + at, tl.full([POSITIONS], -1, tl.int16), mask=(at >= length) & (at < n))
    tl.debug_barrier()
    going = length > 0
    while going:
        down = inside & (right > at)
        child = at + 1 + tl.load(splits + pitch * pitch + (right - at) * pitch + at, mask=down, other=0).to(tl.int32)
        gap = at + tl.load(splits + (child - at) * pitch + at, mask=down, other=0).to(tl.int32)
        tl.store(heads + child - 1, tl.where(at == 0, child - 1, at - 1).to(tl.int16), mask=down)
        tl.store(ends + child, right, mask=down)
        tl.store(ends + pitch + child, gap + 1, mask=down)
        tl.store(ends + at, gap, mask=down)

        up = inside & (left < at)
        child = left + tl.load(splits + 2 * pitch * pitch + (at - left) * pitch + left, mask=up, other=0).to(tl.int32)
        gap = child + tl.load(splits + (at - child) * pitch + child, mask=up, other=0).to(tl.int32)
        tl.store(heads + child - 1, (at - 1).to(tl.int16), mask=up)
        tl.store(ends + child, gap, mask=up)
        tl.store(ends + pitch + child, left, mask=up)
        tl.store(ends + pitch + at, gap + 1, mask=up)
        tl.debug_barrier()
        right = tl.load(ends + at, mask=inside, other=0)
        left = tl.load(ends + pitch + at, mask=inside, other=0)
        tl.debug_barrier()
        going = tl.max((inside & ((right > at) | (left < at))).to(tl.int32), 0) > 0
