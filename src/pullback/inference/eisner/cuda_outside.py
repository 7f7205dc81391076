"""The outside sweep on a GPU: marginals and their derivative, in Triton, one program a sentence.

From wide spans to narrow ones, the probability of an item is the sum over its uses of

    inside(item) * inside(sibling) * outside(parent),

with outside = probability / inside: every term is a probability, so that no largest term has to be found first. README.md
names the items, cuda_layout.py the charts and lanes, cuda_numbers.py the numbers; outside(between) replaces between, and
outside(right) and outside(left) the scores.

With each value may go a companion (cuda_inside.py). With p_t the probabilities of an item's uses, in(item) and out(parent) the
companions of its inside and of its parents' outside values, and p the sum of the p_t,

    slope of p:         sum_t p_t (in(item) + in(sibling) + out(parent)),
    gradient's share:   sum_t p_t (in(item) + in(sibling) + out(parent) - log p_t),      p (in(item) + out(item) - log p).

The entropies of outside values begin with minus that of the whole, so that the second sum of an arc is the derivative of the
entropy in its score: no score is in it. Its terms are as large as the entropies of long spans, which cancel: so it is in
float64 whatever the scores are.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.eisner.cuda_inside import ENTROPY, SLOPE, inside
from pullback.inference.eisner.cuda_layout import (
    beyond,
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

_SLOPE, _ENTROPY = constant(SLOPE), constant(ENTROPY)


@jit(do_not_specialize=["batch", "n", "multiroot"])
def marginals(
    scores, lengths, direction, out, scratch, slope_scratch, batch, n, multiroot,
    COMPANION: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the marginals of `[B, n, n]` scores, or their derivative along a direction, or the gradient of the entropy.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        direction: `[B, n, n]`, looked at only with the companion SLOPE.
        out: `[B, n, n]`, to write; NaN for a sentence with NaN, +inf or no tree.
        scratch: charts of int64 for each program.
        slope_scratch: charts of float64 for each program, if slopes are asked for.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        COMPANION: ALONE for marginals, SLOPE for their derivative, ENTROPY for the gradient of the entropy.
        PARTS: elements a number has in `scratch`.
        ROWS: splits or uses looked at together.
        LANES: spans looked at together, on both sides.
    """
    SOFT: tl.constexpr = tl.float64 if COMPANION == _ENTROPY else scores.dtype.element_ty
    size, guard = chart_sizes(n, ROWS, LANES)
    charts = charts_of(scratch, size, guard, PARTS)
    slopes = charts_of(slope_scratch, size, guard, 1)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        fill(out + matrix, n * n, 0.0, 32 * LANES)
        empty_charts(charts, size, guard, length, SOFT, LANES)
        if COMPANION:
            fill(slopes - guard, 7 * size + 2 * guard, 0.0, 32 * LANES)
        if COMPANION == _SLOPE:
            tl.debug_barrier()
            lay_out_direction(
                direction + matrix, scores + matrix, length, n, slopes + 5 * size, size, 32, LANES // 2
            )  # fmt: skip
        shift, garbled = lay_out_weights(scores + matrix, length, n, charts, size, SOFT, 32, LANES // 2)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(width, length, n + 1, multiroot, charts, slopes, size, COMPANION, SOFT, ROWS, LANES)
            tl.debug_barrier()
        m, _ = load(charts, length * (n + 1), 0, True, SOFT)
        for done in range(0, length):
            _outside(length - done, length, n, charts, slopes, size, out + matrix, COMPANION, SOFT, ROWS, LANES)
            tl.debug_barrier()
        if (garbled > 0) | (m == 0.0) | (beyond(lengths, sentence, n) > 0):
            fill(out + matrix, n * n, float("nan"), 32 * LANES)
        tl.debug_barrier()  # the charts of an empty sentence were read just now


@jit()
def _outside(
    width, length, n, charts, slopes, size, out,
    COMPANION: tl.constexpr, SOFT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
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
        item, item_e, item_slope = _item(charts, slopes, side + at, real, COMPANION, SOFT)
        arc, arc_e, arc_slope = _item(charts, slopes, 2 * size + side + at, real, COMPANION, SOFT)
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
                of_item, d_item, COMPANION, SOFT,
            )  # fmt: skip
            of_arc, d_arc = _add_uses(
                charts, slopes, arc, arc_e, arc_slope, rest, 5 * size + side[None, :] + parent, along, read,
                of_arc, d_arc, COMPANION, SOFT,
            )  # fmt: skip
            of_item, d_item = _add_uses(
                charts, slopes, item, item_e, item_slope, other_arc, other, across, read,
                of_item, d_item, COMPANION, SOFT,
            )  # fmt: skip
        p, d_p = tl.sum(of_item, 0), tl.sum(d_item, 0)
        p += ((at == length * pitch) & ~left).to(SOFT)  # the item that everything is below
        outside, outside_e, outside_slope = _outside_of(p, d_p, item, item_e, item_slope, COMPANION, SOFT)
        _put(charts, slopes, 5 * size + side + at, outside, outside_e, outside_slope, real, COMPANION, SOFT)
        # an arc's own span is the first of its uses
        own = arc * outside * power(arc_e + outside_e, SOFT)
        p, d_p = tl.sum(of_arc, 0) + own, tl.sum(d_arc, 0)
        if COMPANION:
            d_p += own * _change(arc_slope + outside_slope, own, COMPANION, SOFT)
        _put_between(first, width, length, pitch, charts, slopes, size, p, d_p, COMPANION, SOFT, LANES)
        result = tl.minimum(p, 1.0)
        if COMPANION:
            result = d_p
        low, high = start - 1, start + width - 1
        head, word = tl.where(left, high, low), tl.where(left, low, high)
        tl.store(out + tl.where(head < 0, word, head) * n + word, result, mask=real & (word >= 0))


@jit()
def _put_between(
    first, width, length, pitch, charts, slopes, size, p, d_p,
    COMPANION: tl.constexpr, SOFT: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The outside values of between items, whose probability is that of their two arcs."""
    start = first + tl.arange(0, LANES // 2)
    real = start + width <= length
    at = 4 * size + width * pitch + start
    p = tl.sum(p.reshape(2, LANES // 2), 0)
    if COMPANION:
        d_p = tl.sum(d_p.reshape(2, LANES // 2), 0)
    between, e, slope = _item(charts, slopes, at, real, COMPANION, SOFT)
    outside, outside_e, outside_slope = _outside_of(p, d_p, between, e, slope, COMPANION, SOFT)
    _put(charts, slopes, at, outside, outside_e, outside_slope, real, COMPANION, SOFT)


@jit()
def _item(charts, slopes, at, mask, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """An item's mantissa, exponent and slope."""
    m, e = load(charts, at, 0, mask, SOFT)
    slope = m
    if COMPANION:
        slope = tl.load(slopes + at, mask=mask)
    return m, e, slope


@jit()
def _add_uses(
    charts, slopes, item, item_e, slope, sibling, parent, more, read, total, d_total,
    COMPANION: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Add a tile of an item's uses to its probability, and to the derivative of that."""
    m, e = load(charts, sibling, more, read, SOFT)
    parent_m, parent_e = load(charts, parent, more, read, SOFT)
    p = m * parent_m * item[None, :] * power(e + parent_e + item_e[None, :], SOFT)
    if COMPANION:
        change = tl.load(slopes + sibling + more, mask=read) + slope[None, :]
        change += tl.load(slopes + parent + more, mask=read)
        d_total += p * _change(change, p, COMPANION, SOFT)
    return total + p, d_total


@jit()
def _change(companions, p, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """What a use of probability p adds to the companion of its item."""
    if COMPANION == _ENTROPY:
        companions -= tl.log(tl.where(p > 0.0, p, 1.0).to(tl.float64))
    return companions.to(SOFT)


@jit()
def _outside_of(p, d_p, item, item_e, slope, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """The outside value of an item of probability p, and its slope."""
    m, e = normal(tl.where(item > 0.0, p / item, 0.0), -item_e, SOFT)
    outside_slope = m
    if COMPANION:
        outside_slope = tl.where(p > 0.0, (d_p / p).to(tl.float64) - slope, 0.0)
    if COMPANION == _ENTROPY:
        outside_slope += tl.log(tl.where(p > 0.0, p, 1.0).to(tl.float64))
    return m, e, outside_slope


@jit()
def _put(charts, slopes, at, m, e, slope, mask, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    store(charts, at, m, e, mask, SOFT)
    if COMPANION:
        tl.store(slopes + at, slope, mask=mask)
