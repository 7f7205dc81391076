"""The best projective tree of up to 63 words, inside a larger GPU program: Eisner's algorithm in registers, in Triton.

As cuda_short.py, but a chart is two tiles `[split, start / 2]`, one for even and one for odd starts. A shift by one start then
exchanges the two, and moves one of them by a lane: a quarter of what a shift of one tile with two starts in a lane takes.
"""

from __future__ import annotations

from pullback.inference.sparsemap.cuda_long import arcs_of
from pullback.inference.sparsemap.cuda_short import follow
from pullback.inference.sparsemap.cuda_state import length_of
from pullback.inference.sparsemap.cuda_trees import _MULTIROOT as MULTIROOT
from pullback.inference.triton_support import constant, jit, tl

_POSITIONS, _LANES = constant(64), constant(32)


@jit(noinline=True)
def best_wide(scores, example, LEVELS: tl.constexpr):
    """The oracle for projective trees of fewer than 64 words, in float32: see cuda_search.py."""
    n, length = example.first, length_of(example)
    splits = (example.scratch + n + 1).to(tl.pointer_type(tl.int16))
    best = _spans(scores, length, n, example.options & MULTIROOT, splits)
    exists = tl.where((best > float("-inf")) | (length == 0), 1, 0)
    if exists > 0:
        follow(length, n, splits, example, _POSITIONS)
    return exists


@jit()
def _spans(scores, length, n, multiroot, splits):
    """Write the splits; returns the score of the best tree. A name that ends in 0 is for even starts, in 1 for odd ones."""
    even = 2 * tl.arange(0, _LANES)
    odd = even + 1
    row = tl.broadcast_to(tl.arange(0, _POSITIONS)[:, None], [_POSITIONS, _LANES])
    following = tl.broadcast_to(tl.minimum(tl.arange(0, _LANES) + 1, _LANES - 1)[None, :], [_POSITIONS, _LANES])
    nothing = tl.full([_POSITIONS, _LANES], float("-inf"), scores.dtype.element_ty)
    none = tl.zeros([_POSITIONS, _LANES], tl.int32)
    empty0, empty1 = tl.where(row == even[None, :], 0.0, nothing), tl.where(row == odd[None, :], 0.0, nothing)
    right_from0, left_from0, right_arc0, down_gap0 = empty0, empty0, nothing, none
    right_from1, left_from1, right_arc1, down_gap1 = empty1, empty1, nothing, none
    left_after0, right_to0, left_arc0, up_gap0 = empty0, nothing, nothing, none
    left_after1, right_to1, left_arc1, up_gap1 = empty1, nothing, nothing, none
    right0 = tl.zeros([_LANES], scores.dtype.element_ty)
    for width in range(1, length + 1):
        down0, up0 = arcs_of(scores, even, width, length, n)
        down1, up1 = arcs_of(scores, odd, width, length, n)
        gap0, gap_at0, right0, right_at0, left0, left_at0, gap1, gap_at1, right1, right_at1, left1, left_at1 = tl.reduce(
            (right_from0 + left_after0, row, right_arc0 + right_to0, down_gap0, left_from0 + left_arc0, up_gap0,
             right_from1 + left_after1, row, right_arc1 + right_to1, down_gap1, left_from1 + left_arc1, up_gap1), 0, _larger,
        )  # fmt: skip
        down0, up0, down1, up1 = gap0 + down0, gap0 + up0, gap1 + down1, gap1 + up1
        at = splits + width * (n + 1)
        right0, left0, down_at0, up_at0 = _close(
            at, even, width, length, n, gap_at0, right0, right_at0, left0, left_at0, down0, up0
        )  # fmt: skip
        right1, left1, down_at1, up_at1 = _close(
            at, odd, width, length, n, gap_at1, right1, right_at1, left1, left_at1, down1, up1
        )  # fmt: skip
        right_from0, left_from0, right_arc0, down_gap0 = _append(
            row == (even + width)[None, :], right_from0, left_from0, right_arc0, down_gap0,
            tl.where((even > 0) | (multiroot != 0), right0, float("-inf")), left0, down0, down_at0,
        )  # fmt: skip
        right_from1, left_from1, right_arc1, down_gap1 = _append(
            row == (odd + width)[None, :], right_from1, left_from1, right_arc1, down_gap1, right1, left1, down1, down_at1
        )  # fmt: skip
        after0, to0, arc0, g0 = _prepend(row, even, left_after0, right_to0, left_arc0, up_gap0, left0, right0, up0, up_at0)
        left_after0, right_to0, left_arc0, up_gap0 = _prepend(
            row, odd, left_after1, right_to1, left_arc1, up_gap1, left1, right1, up1, up_at1
        )  # fmt: skip
        left_after1, right_to1 = tl.gather(after0, following, 1), tl.gather(to0, following, 1)
        left_arc1, up_gap1 = tl.gather(arc0, following, 1), tl.gather(g0, following, 1)
    return tl.max(tl.where(even == 0, right0, float("-inf")), 0)


@jit()
def _close(at, start, width, length, n, gap_at, right, right_at, left, left_at, down, up):
    """The items of all spans of a width, given their arcs, and the gaps of these; writes their splits."""
    end = start + width
    down_at, up_at = 64 * end + gap_at, 64 * start + gap_at
    tl.store(at + start, tl.where(down > right, down_at, right_at).to(tl.int16), mask=end <= length)
    left_split = tl.where(up > left, up_at, left_at).to(tl.int16)
    tl.store(at + (n + 1) * (n + 1) + start, left_split, mask=end <= length)
    return tl.maximum(down, right), tl.maximum(up, left), down_at, up_at


@jit()
def _append(newest, right_from, left_from, right_arc, down_gap, right, left, down, down_at):
    """Add the items that end at a new split to those from each start."""
    right_from, left_from = tl.where(newest, right[None, :], right_from), tl.where(newest, left[None, :], left_from)
    return right_from, left_from, tl.where(newest, down[None, :], right_arc), tl.where(newest, down_at[None, :], down_gap)


@jit()
def _prepend(row, start, left_after, right_to, left_arc, up_gap, left, right, up, up_at):
    """Add the items that begin at a new split to those to each end."""
    own = row == start[None, :]
    left_after = tl.where(row + 1 == start[None, :], left[None, :], left_after)
    right_to, left_arc = tl.where(own, right[None, :], right_to), tl.where(own, up[None, :], left_arc)
    return left_after, right_to, left_arc, tl.where(own, up_at[None, :], up_gap)


@jit()
def _larger(
    a, a_at, b, b_at, c, c_at, d, d_at, e, e_at, f, f_at,
    other_a, other_a_at, other_b, other_b_at, other_c, other_c_at,
    other_d, other_d_at, other_e, other_e_at, other_f, other_f_at,
):  # fmt: skip
    """The larger of each pair of values, with what belongs to it."""
    a, a_at = _better(a, a_at, other_a, other_a_at)
    b, b_at = _better(b, b_at, other_b, other_b_at)
    c, c_at = _better(c, c_at, other_c, other_c_at)
    d, d_at = _better(d, d_at, other_d, other_d_at)
    e, e_at = _better(e, e_at, other_e, other_e_at)
    f, f_at = _better(f, f_at, other_f, other_f_at)
    return a, a_at, b, b_at, c, c_at, d, d_at, e, e_at, f, f_at


@jit()
def _better(a, a_at, b, b_at):
    return tl.where(a >= b, a, b), tl.where(a >= b, a_at, b_at)
