"""The best projective tree of a short sentence, inside a larger GPU program: Eisner's algorithm in registers, in Triton.

The root is position 0 and word m position m + 1; eisner/README.md names the items. A chart is a square tile `[split, start]`,
which takes part in the spans of one width: its entry is an item from the start i to the split k, or one from k to the end
j = i + width, which takes a shift by one start from width to width. So the two halves of all splits of all spans of a
width stand next to each other, and nothing waits for memory. Splits are rows, as maxima over registers and warps are faster
than over the lanes of a warp; shifts over lanes are cheap.

A split is kept together with the gap of the arc that it makes, as 64 * child + gap: what it takes to go on from there.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_long import arcs_of, larger
from pullback.inference.sparsemap.cuda_state import length_of
from pullback.inference.sparsemap.cuda_trees import _MULTIROOT as MULTIROOT
from pullback.inference.triton_support import jit, tl


@jit(noinline=True)
def best_short(scores, example, LEVELS: tl.constexpr):
    """The oracle for projective trees of fewer than 2^LEVELS words, at most 64: see cuda_search.py."""
    n, length = example.first, length_of(example)
    splits = (example.scratch + n + 1).to(tl.pointer_type(tl.int16))
    best = _spans(scores, length, n, example.options & MULTIROOT, splits, 1 << LEVELS)
    exists = tl.where((best > float("-inf")) | (length == 0), 1, 0)
    if exists > 0:
        _follow(length, n, splits, example, 1 << LEVELS)
    return exists


def scratch_of_short(n: int) -> int:
    """How many float64 it needs: two messages for each position, and two tables of splits, `[width, start]`."""
    return n + 1 + ((n + 1) ** 2 + 1) // 2


@jit()
def _spans(scores, length, n, multiroot, splits, POSITIONS: tl.constexpr):
    """Write the splits; returns the score of the best tree."""
    pitch = n + 1
    start = tl.arange(0, POSITIONS)
    row, column = start[:, None], start[None, :]
    own = row == column
    nothing = tl.full([POSITIONS, POSITIONS], float("-inf"), scores.dtype.element_ty)
    empty = tl.where(own, 0.0, nothing)
    none = tl.zeros([POSITIONS, POSITIONS], tl.int32)
    right_from, left_from, right_arc = empty, empty, nothing  # right(i, k), left(i, k), right_arc(i, k)
    left_after, right_to, left_arc = empty, nothing, nothing  # left(k + 1, j), right(k, j), left_arc(k, j)
    down_gap, up_gap = none, none  # 64 k + the gap of the arc from i to k, and of that from j to k
    following = tl.broadcast_to(tl.minimum(column + 1, POSITIONS - 1), [POSITIONS, POSITIONS])
    index = tl.broadcast_to(row, [POSITIONS, POSITIONS])
    right = tl.zeros([POSITIONS], scores.dtype.element_ty)
    down, up = arcs_of(scores, start, 1, length, n)
    for width in range(1, length + 1):
        next_down, next_up = arcs_of(scores, start, width + 1, length, n)  # on the way while the others are in use
        # one reduction instead of three, for the sake of its barriers
        gap, gap_at, right, right_at, left, left_at = tl.reduce(
            (right_from + left_after, index, right_arc + right_to, down_gap, left_from + left_arc, up_gap), 0, larger
        )
        new_down, new_up = gap + down, gap + up
        end = start + width
        down_at, up_at = 64 * end + gap_at, 64 * start + gap_at
        right_at, left_at = tl.where(new_down > right, down_at, right_at), tl.where(new_up > left, up_at, left_at)
        right, left = tl.maximum(new_down, right), tl.maximum(new_up, left)
        at = splits + width * pitch + start
        tl.store(at, right_at.to(tl.int16), mask=end <= length)
        tl.store(at + pitch * pitch, left_at.to(tl.int16), mask=end <= length)

        newest = row == end[None, :]
        near = tl.where((start > 0) | (multiroot != 0), right, float("-inf"))  # no gap between two children of the root
        right_from = tl.where(newest, near[None, :], right_from)
        left_from = tl.where(newest, left[None, :], left_from)
        right_arc = tl.where(newest, new_down[None, :], right_arc)
        down_gap = tl.where(newest, down_at[None, :], down_gap)
        left_after = tl.gather(tl.where(row + 1 == column, left[None, :], left_after), following, 1)
        right_to = tl.gather(tl.where(own, right[None, :], right_to), following, 1)
        left_arc = tl.gather(tl.where(own, new_up[None, :], left_arc), following, 1)
        up_gap = tl.gather(tl.where(own, up_at[None, :], up_gap), following, 1)
        down, up = next_down, next_up
    return tl.max(tl.where(start == 0, right, float("-inf")), 0)


@jit()
def _follow(length, n, splits, example, POSITIONS: tl.constexpr):
    """Build the tree from the top: in a round every position that has one finds its outermost child on either side.

    A position knows where its right item ends and where its left item starts; it tells the child its own. A message bears
    the number of its round, and rounds take turns with the two halves of `ends`: so one barrier a round is enough, as
    nobody writes to a half before all have read what they were told there.
    """
    pitch = n + 1
    ends = example.scratch.to(tl.pointer_type(tl.int32))
    at = tl.arange(0, POSITIONS)
    inside = at <= length
    nobody = tl.full([POSITIONS], -1, tl.int32)
    tl.store(ends + at, nobody, mask=inside)
    tl.store(ends + pitch + at, nobody, mask=inside)
    tl.debug_barrier()
    above = at
    right, left = tl.where(at == 0, length, at), at
    turn, going = 0, 1
    while going > 0:
        down, up = inside & (right > at), inside & (left < at)
        on_right = tl.load(splits + (right - at) * pitch + at, mask=down, other=0).to(tl.int32)
        on_left = tl.load(splits + (pitch + at - left) * pitch + left, mask=up, other=0).to(tl.int32)
        gap, left_gap = on_right & 63, on_left & 63
        told = ends + (turn % 2) * pitch
        sender = (64 * turn + at) * 64
        tl.store(told + (on_right >> 6), (sender + right) * 64 + gap + 1, mask=down)
        tl.store(told + (on_left >> 6), (sender + left_gap) * 64 + left, mask=up)
        tl.debug_barrier()
        message = tl.load(told + at, mask=inside, other=-1)
        new = (message >> 18) == turn
        above = tl.where(new, (message >> 12) & 63, above)
        right = tl.where(new, (message >> 6) & 63, tl.where(down, gap, right))
        left = tl.where(new, message & 63, tl.where(up, left_gap + 1, left))
        going = tl.max((inside & ((right > at) | (left < at))).to(tl.int32), 0)
        turn += 1
    arc = tl.where(above == 0, at - 1, above - 1) * n + at - 1
    tl.store(example.found + at - 1, tl.where(inside, arc, -1), mask=(at > 0) & (at <= n))
