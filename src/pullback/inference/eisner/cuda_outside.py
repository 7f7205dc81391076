"""The outside sweep on a GPU: marginals and their derivative, in Triton, one program a sentence.

From wide spans to narrow ones, the probability of an item is the sum over its uses of

    inside(item) * inside(sibling) * outside(parent),

with outside = probability / inside: every term is a probability, so that no largest term has to be found first. README.md
names the items, cuda_layout.py the charts and lanes, cuda_numbers.py the numbers; outside(between) replaces between, and
outside(right) and outside(left) the scores.
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_inside import inside
from pullback.inference.eisner.cuda_layout import (
    chart_sizes,
    charts_of,
    empty_charts,
    fill,
    lay_out_direction,
    lay_out_weights,
    length_of,
    read_lanes,
    spans_of,
)
from pullback.inference.eisner.cuda_numbers import load, normal, power, store
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "multiroot"])
def marginals(
    scores, lengths, direction, out, scratch, slope_scratch, batch, n, multiroot,
    SLOPE: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the marginals of `[B, n, n]` scores, or, with SLOPE, their derivative along a direction.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        direction: `[B, n, n]`, looked at only with SLOPE.
        out: `[B, n, n]`, to write; NaN for the words of a sentence with NaN or +inf, zeros if it has no tree.
        scratch: charts of int64 for each program.
        slope_scratch: charts of float64 for each program, if slopes are asked for.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        SLOPE: 0 or 1.
        PARTS: elements a number has in `scratch`.
        ROWS: splits or uses looked at together.
        LANES: spans looked at together, on both sides.
    """
    SOFT: tl.constexpr = scores.dtype.element_ty
    size, guard = chart_sizes(n, ROWS, LANES)
    charts = charts_of(scratch, size, guard, PARTS)
    slopes = charts_of(slope_scratch, size, guard, 1)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        fill(out + matrix, n * n, 0.0, 32 * LANES)
        empty_charts(charts, size, guard, length, SOFT, LANES)
        if SLOPE:
            fill(slopes - guard, 7 * size + 2 * guard, 0.0, 32 * LANES)
            tl.debug_barrier()
            lay_out_direction(
                direction + matrix, scores + matrix, length, n, slopes + 5 * size, size, 32, LANES // 2
            )  # fmt: skip
        shift, garbled = lay_out_weights(scores + matrix, length, n, charts, size, SOFT, 32, LANES // 2)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(width, length, n + 1, multiroot, charts, slopes, size, SLOPE, SOFT, ROWS, LANES)
            tl.debug_barrier()
        for done in range(0, length):
            _outside(
                length - done, length, n, garbled, charts, slopes, size, out + matrix, SLOPE, SOFT, ROWS, LANES
            )  # fmt: skip
            tl.debug_barrier()


@jit()
def _outside(
    width, length, n, garbled, charts, slopes, size, out,
    SLOPE: tl.constexpr, SOFT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The outside values of all spans of a width, and the marginals of their arcs.

    The right item of (i, j) stands left of a gap in (i, j'), or is the right part of (i', j), and its arc begins right items
    of (i, j'); the left item stands right of a gap in (i', j), or is the left part of (i, j'), and its arc ends left items of
    (i', j); for i' < i and j' > j. So of the parents (i, j') and (i', j) the one is for the first and the last of an item's
    three kinds of uses, the other for the second, and on the other side the other way round.
    """
    pitch = n + 1
    row = tl.arange(0, ROWS)[:, None]
    for first in range(0, length + 1 - width, LANES // 2):
        start, left, real = spans_of(first, width, length, LANES)
        read = read_lanes(real, LANES)
        at, side = width * pitch + start, tl.where(left, size, 0)
        item, item_e, item_slope = _item(charts, slopes, side + at, real, SLOPE, SOFT)
        arc, arc_e, arc_slope = _item(charts, slopes, 2 * size + side + at, real, SLOPE, SOFT)
        # parents have 1, 2, ... words more; from one to the next the starts of (i, j') stay, those of (i', j) go down
        parent = (at + pitch - tl.where(left, 1, 0))[None, :]
        other = (5 * size + side + at + pitch - tl.where(left, 0, 1))[None, :]
        gap = (size - side + tl.where(left, start - 1, start + width + 1))[None, :]
        rest = (side + pitch + tl.where(left, start - 1, start + width))[None, :]
        other_arc = (2 * size + side + pitch + tl.where(left, start + width, start - 1))[None, :]
        step, other_step = (pitch - left.to(tl.int32))[None, :], (pitch - 1 + left.to(tl.int32))[None, :]
        of_item, of_arc = tl.zeros([ROWS, LANES], SOFT), tl.zeros([ROWS, LANES], SOFT)
        d_item, d_arc = of_item, of_arc
        for more in range(0, length - width, ROWS):
            along, across = (more + row) * step, (more + row) * other_step
            of_item, d_item = _add_uses(
                charts, slopes, item, item_e, item_slope, gap, 4 * size + parent, along, read,
                of_item, d_item, SLOPE, SOFT,
            )  # fmt: skip
            of_arc, d_arc = _add_uses(
                charts, slopes, arc, arc_e, arc_slope, rest, 5 * size + side[None, :] + parent, along, read,
                of_arc, d_arc, SLOPE, SOFT,
            )  # fmt: skip
            of_item, d_item = _add_uses(
                charts, slopes, item, item_e, item_slope, other_arc, other, across, read,
                of_item, d_item, SLOPE, SOFT,
            )  # fmt: skip
        p, d_p = tl.sum(of_item, 0), tl.sum(d_item, 0)
        p += ((at == length * pitch) & ~left).to(SOFT)  # the item that everything is below
        outside, outside_e, outside_slope = _outside_of(p, d_p, item, item_e, item_slope, SLOPE, SOFT)
        _put(charts, slopes, 5 * size + side + at, outside, outside_e, outside_slope, real, SLOPE, SOFT)
        # an arc's own span is the first of its uses
        own = arc * outside * power(arc_e + outside_e, SOFT)
        p, d_p = tl.sum(of_arc, 0) + own, tl.sum(d_arc, 0)
        if SLOPE:
            d_p += own * (arc_slope + outside_slope).to(SOFT)
        _put_between(first, width, length, pitch, charts, slopes, size, p, d_p, SLOPE, SOFT, LANES)
        result = tl.minimum(p, 1.0)
        if SLOPE:
            result = d_p
        result += tl.where(garbled == 0, 0.0, float("nan")).to(SOFT)
        low, high = start - 1, start + width - 1
        head, word = tl.where(left, high, low), tl.where(left, low, high)
        tl.store(out + tl.where(head < 0, word, head) * n + word, result, mask=real & (word >= 0))


@jit()
def _put_between(
    first, width, length, pitch, charts, slopes, size, p, d_p,
    SLOPE: tl.constexpr, SOFT: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The outside values of between items, whose probability is that of their two arcs."""
    start = first + tl.arange(0, LANES // 2)
    real = start + width <= length
    at = 4 * size + width * pitch + start
    p = tl.sum(p.reshape(2, LANES // 2), 0)
    if SLOPE:
        d_p = tl.sum(d_p.reshape(2, LANES // 2), 0)
    between, e, slope = _item(charts, slopes, at, real, SLOPE, SOFT)
    outside, outside_e, outside_slope = _outside_of(p, d_p, between, e, slope, SLOPE, SOFT)
    _put(charts, slopes, at, outside, outside_e, outside_slope, real, SLOPE, SOFT)


@jit()
def _item(charts, slopes, at, mask, SLOPE: tl.constexpr, SOFT: tl.constexpr):
    """An item's mantissa, exponent and slope."""
    m, e = load(charts, at, 0, mask, SOFT)
    slope = m
    if SLOPE:
        slope = tl.load(slopes + at, mask=mask)
    return m, e, slope


@jit()
def _add_uses(
    charts, slopes, item, item_e, slope, sibling, parent, more, read, total, d_total,
    SLOPE: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Add a tile of an item's uses to its probability, and to the derivative of that."""
    m, e = load(charts, sibling, more, read, SOFT)
    parent_m, parent_e = load(charts, parent, more, read, SOFT)
    p = m * parent_m * item[None, :] * power(e + parent_e + item_e[None, :], SOFT)
    if SLOPE:
        change = tl.load(slopes + sibling + more, mask=read) + slope[None, :]
        change += tl.load(slopes + parent + more, mask=read)
        d_total += p * change.to(SOFT)
    return total + p, d_total


@jit()
def _outside_of(p, d_p, item, item_e, slope, SLOPE: tl.constexpr, SOFT: tl.constexpr):
    """The outside value of an item of probability p, and its slope."""
    m, e = normal(tl.where(item > 0.0, p / item, 0.0), -item_e, SOFT)
    outside_slope = m
    if SLOPE:
        outside_slope = tl.where(p > 0.0, (d_p / p).to(tl.float64) - slope, 0.0)
    return m, e, outside_slope


@jit()
def _put(charts, slopes, at, m, e, slope, mask, SLOPE: tl.constexpr, SOFT: tl.constexpr):
    store(charts, at, m, e, mask, SOFT)
    if SLOPE:
        tl.store(slopes + at, slope, mask=mask)
