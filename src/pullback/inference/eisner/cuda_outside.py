"""The outside sweep on a GPU: marginals and their derivative, in Triton, one program a sentence.

From wide spans to narrow ones, the probability of an item is the sum over its uses of

    inside(item) * inside(sibling) * outside(parent),

with outside = probability / inside kept as a log: every term is a probability, so that no largest term has to be found
first. README.md names the items, cuda_layout.py the charts; behind the five of the inside sweep, of which the fifth
becomes outside(between), stand outside(right) and outside(left).
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_inside import inside
from pullback.inference.eisner.cuda_layout import clear, lay_out_direction, lay_out_logs, length_of
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "multiroot"])
def marginals(
    scores, lengths, direction, out, charts, slopes, batch, n, multiroot,
    SLOPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the marginals of `[B, n, n]` scores, or, with SLOPE, their derivative along a direction.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        direction: `[B, n, n]`, looked at only with SLOPE.
        out: `[B, n, n]`, to write; NaN for the words of a sentence with NaN or +inf, zeros if it has no tree.
        charts: scratch, 7 charts of float64 a program.
        slopes: the same for slopes, if asked for.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        SLOPE: 0 or 1.
        ROWS: uses looked at together.
        COLUMNS: spans looked at together.
    """
    pitch = n + 1
    size = pitch * pitch
    program = tl.program_id(0)
    charts += program.to(tl.int64) * 7 * size
    slopes += program.to(tl.int64) * 7 * size
    for sentence in range(program, batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        clear(out + matrix, n * n, ROWS * COLUMNS)
        _, garbled = lay_out_logs(scores + matrix, length, n, charts, ROWS, COLUMNS)
        if SLOPE:
            lay_out_direction(direction + matrix, scores + matrix, length, n, slopes, ROWS, COLUMNS)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(
                width, length, pitch, multiroot, charts, slopes, SLOPE, scores.dtype.element_ty, ROWS, COLUMNS
            )  # fmt: skip
            tl.debug_barrier()
        for done in range(0, length):
            _outside(
                length - done, length, n, multiroot, garbled, charts, slopes, out + matrix,
                SLOPE, scores.dtype.element_ty, ROWS, COLUMNS,
            )  # fmt: skip
            tl.debug_barrier()


@jit()
def _outside(
    width, length, n, multiroot, garbled, charts, slopes, out,
    SLOPE: tl.constexpr, SOFT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The outside values of all spans of a width, and the marginals of their arcs.

    The right item of (i, j) stands left of a gap in (i, j'), or is the right part of (i', j); the left item stands right of
    a gap in (i', j), or is the left part of (i, j'); the arc from i begins right items of (i, j'), and the arc to i ends
    left items of (i', j); for i' < i and j' > j.
    """
    pitch = n + 1
    size = pitch * pitch
    for first in range(0, length + 1 - width, COLUMNS):
        start = first + tl.arange(0, COLUMNS)
        real = start + width <= length
        at = width * pitch + start
        right, right_slope = _item(charts, slopes, at, real, SLOPE)
        left, left_slope = _item(charts, slopes, size + at, real, SLOPE)
        right_arc, right_arc_slope = _item(charts, slopes, 2 * size + at, real, SLOPE)
        left_arc, left_arc_slope = _item(charts, slopes, 3 * size + at, real, SLOPE)
        none = tl.zeros([ROWS, COLUMNS], SOFT)
        of_right, of_left, of_right_arc, of_left_arc = none, none, none, none
        d_right, d_left, d_right_arc, d_left_arc = none, none, none, none
        for first_more in range(0, length - width, ROWS):
            more = (first_more + tl.arange(0, ROWS))[:, None]
            end = start[None, :] + width
            wider = real[None, :] & (end + more < length)
            parent = (width + 1 + more) * pitch + start[None, :]
            gap = wider & ((start[None, :] > 0) | (multiroot != 0))
            of_right, d_right = _add_uses(
                charts, slopes, right, right_slope, size + more * pitch + end + 1, 4 * size + parent, gap,
                of_right, d_right, SLOPE, SOFT,
            )  # fmt: skip
            of_left, d_left = _add_uses(
                charts, slopes, left, left_slope, 3 * size + (more + 1) * pitch + end, 6 * size + parent, wider,
                of_left, d_left, SLOPE, SOFT,
            )  # fmt: skip
            of_right_arc, d_right_arc = _add_uses(
                charts, slopes, right_arc, right_arc_slope, (more + 1) * pitch + end, 5 * size + parent, wider,
                of_right_arc, d_right_arc, SLOPE, SOFT,
            )  # fmt: skip
            earlier = start[None, :] - 1 - more
            wider = real[None, :] & (earlier >= 0)
            parent = (width + 1 + more) * pitch + earlier
            gap = wider & ((more == 0) | (earlier > 0) | (multiroot != 0))
            of_right, d_right = _add_uses(
                charts, slopes, right, right_slope, (2 * pitch + more + 1) * pitch + earlier, 5 * size + parent, wider,
                of_right, d_right, SLOPE, SOFT,
            )  # fmt: skip
            of_left, d_left = _add_uses(
                charts, slopes, left, left_slope, more * pitch + earlier, 4 * size + parent, gap,
                of_left, d_left, SLOPE, SOFT,
            )  # fmt: skip
            of_left_arc, d_left_arc = _add_uses(
                charts, slopes, left_arc, left_arc_slope, (pitch + more + 1) * pitch + earlier, 6 * size + parent, wider,
                of_left_arc, d_left_arc, SLOPE, SOFT,
            )  # fmt: skip
        whole = (at == length * pitch).to(SOFT)  # the item that everything is below
        p, slope = _outside_of(
            charts, slopes, 5 * size + at, real, tl.sum(of_right, 0) + whole, tl.sum(d_right, 0), right, right_slope, SLOPE
        )
        # an arc's own span is the first of its uses
        p, slope = _own(right_arc, right_arc_slope, p, slope, tl.sum(of_right_arc, 0), tl.sum(d_right_arc, 0), SLOPE, SOFT)
        q, q_slope = _outside_of(
            charts, slopes, 6 * size + at, real, tl.sum(of_left, 0), tl.sum(d_left, 0), left, left_slope, SLOPE
        )
        q, q_slope = _own(left_arc, left_arc_slope, q, q_slope, tl.sum(of_left_arc, 0), tl.sum(d_left_arc, 0), SLOPE, SOFT)
        between, between_slope = _item(charts, slopes, 4 * size + at, real, SLOPE)
        _outside_of(charts, slopes, 4 * size + at, real, p + q, slope + q_slope, between, between_slope, SLOPE)
        if SLOPE:
            p, q = slope, q_slope
        else:
            p, q = tl.minimum(p, 1.0), tl.minimum(q, 1.0)
        poison = tl.where(garbled == 0, 0.0, float("nan")).to(SOFT)
        word = start + width - 1
        tl.store(out + tl.where(start == 0, word, start - 1) * n + word, p + poison, mask=real)
        tl.store(out + word * n + start - 1, q + poison, mask=real & (start > 0))


@jit()
def _item(charts, slopes, at, mask, SLOPE: tl.constexpr):
    """The log of an item, and its slope."""
    value = tl.load(charts + at, mask=mask, other=float("-inf"))
    slope = value
    if SLOPE:
        slope = tl.load(slopes + at, mask=mask, other=0.0)
    return value, slope


@jit()
def _add_uses(
    charts, slopes, item, slope, sibling, parent, mask, total, d_total, SLOPE: tl.constexpr, SOFT: tl.constexpr
):  # fmt: skip
    """Add a tile of an item's uses to its probability, and to the derivative of that."""
    log_p = tl.load(charts + sibling, mask=mask, other=float("-inf")) + tl.load(
        charts + parent, mask=mask, other=float("-inf")
    )
    p = tl.exp2((log_p + item[None, :]).to(SOFT))
    if SLOPE:
        change = tl.load(slopes + sibling, mask=mask, other=0.0) + tl.load(slopes + parent, mask=mask, other=0.0)
        d_total += p * (change + slope[None, :]).to(SOFT)
    return total + p, d_total


@jit()
def _outside_of(charts, slopes, at, mask, p, d_p, item, slope, SLOPE: tl.constexpr):
    """Write the outside value of an item of probability p, and its slope; returns both."""
    possible = p > 0.0
    out = tl.where(possible, tl.log2(p.to(tl.float64)) - item, float("-inf"))
    tl.store(charts + at, out, mask=mask)
    out_slope = out
    if SLOPE:
        out_slope = tl.where(possible, (d_p / p).to(tl.float64) - slope, 0.0)
        tl.store(slopes + at, out_slope, mask=mask)
    return out, out_slope


@jit()
def _own(arc, arc_slope, out, out_slope, p, d_p, SLOPE: tl.constexpr, SOFT: tl.constexpr):
    """Add the use of an arc in the complete item of its own span."""
    own = tl.exp2((arc + out).to(SOFT))
    if SLOPE:
        d_p += own * (arc_slope + out_slope).to(SOFT)
    return p + own, d_p
