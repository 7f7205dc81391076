"""The inside sweep on a GPU: sums over projective trees in logarithms, in Triton, one program a sentence.

Logs are to base 2 and in float64, so that they hold scores of any size; exponentials are in the scores' own precision,
and a sum of them is at least 1, so that float32 loses nothing but its last bits. README.md names the items, cuda_layout.py
the charts and lanes.

With each item may go a companion, a mean over the item's derivations. With the probability p_t of each of its splits,

    slope of the item's log:   sum_t p_t (slopes of the two parts),              the mean of the direction over the arcs;
    entropy of the item:       sum_t p_t (entropies of the two parts - log p_t).

Both are sums without cancellation, whatever the size of the scores.
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import charts_of, empty_charts, lay_out_logs, length_of, spans_of
from pullback.inference.triton_support import jit, tl

ALONE, SLOPE, ENTROPY = range(3)


@jit(do_not_specialize=["batch", "n", "multiroot"])
def log_partition(
    scores, lengths, out, scratch, mean_scratch, batch, n, multiroot,
    COMPANION: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the log-partitions of `[B, n, n]` scores, or, with the companion ENTROPY, the entropies.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        out: `[B]`, float64, to write; NaN for a sentence with NaN or +inf.
        scratch: charts of float64 for each program.
        mean_scratch: the same for companions, if there are any.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        COMPANION: ALONE or ENTROPY.
        ROWS: splits looked at together.
        LANES: spans looked at together, on both sides.
    """
    charts, size, guard = charts_of(scratch, n, ROWS, LANES)
    means, _, _ = charts_of(mean_scratch, n, ROWS, LANES)
    end = n + 1
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = scores + tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        empty_charts(charts, size, guard, length, float("-inf"), LANES)
        if COMPANION:
            empty_charts(means, size, guard, length, 0.0, LANES)
        shift, garbled = lay_out_logs(matrix, length, n, charts + 5 * size, size, 32, LANES // 2)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(
                width, length, n + 1, multiroot, charts, means, size, COMPANION, scores.dtype.element_ty, ROWS, LANES
            )  # fmt: skip
            tl.debug_barrier()
        result = shift + tl.load(charts + length * end) * 0.6931471805599453  # log(2)
        if COMPANION:
            result = tl.load(means + length * end)
        tl.store(out + sentence, tl.where(garbled == 0, result, float("nan")))
        tl.debug_barrier()


@jit()
def inside(
    width, length, pitch, multiroot, charts, means, size,
    COMPANION: tl.constexpr, SOFT: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The items of all spans of a width, and their companions."""
    row = tl.arange(0, ROWS)[:, None]
    for first in range(0, length + 1 - width, LANES // 2):
        start, left, real = spans_of(first, width, length, LANES)
        near, far = start[None, :], (width - 1) * pitch + start[None, :] + 1
        side_near = near + tl.where(left, size, 2 * size)[None, :] + pitch
        side_far = far + tl.where(left, 3 * size, 0)[None, :]
        top = tl.full([LANES], float("-inf"), tl.float64)
        total, mass = tl.zeros([LANES], SOFT), tl.zeros([LANES], tl.float64)
        between_top, between_total, between_mass = top, total, mass
        for split in range(0, width, ROWS):
            up, down = (split + row) * pitch, (split + row) * (1 - pitch)
            between_top, between_total, between_mass = _add_pairs(
                charts, means, near, up, far + size, down,
                between_top, between_total, between_mass, COMPANION, SOFT,
            )  # fmt: skip
            top, total, mass = _add_pairs(
                charts, means, side_near, up, side_far, down, top, total, mass, COMPANION, SOFT
            )  # fmt: skip
        at = width * pitch + start
        side = tl.where(left, size, 0)
        between, mean = _finish(between_top, between_total, between_mass, COMPANION, SOFT)
        _put(charts, means, 4 * size + at, real & ~left, between, mean, COMPANION)
        arc = between + tl.load(charts + 5 * size + side + at, mask=real, other=float("-inf"))
        if COMPANION == 1:
            mean += tl.load(means + 5 * size + side + at, mask=real, other=0.0)
        _put(charts, means, 2 * size + side + at, real, arc, mean, COMPANION)
        top, total, mass = _add_one(arc, mean, top, total, mass, COMPANION, SOFT)
        complete, mean = _finish(top, total, mass, COMPANION, SOFT)
        # a single root's right items are used nowhere but at the end
        used = real & (left | (start > 0) | (width == length) | (multiroot != 0))
        _put(charts, means, side + at, used, complete, mean, COMPANION)


@jit()
def _add_pairs(
    charts, means, a, a_more, b, b_more, top, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr
):  # fmt: skip
    """Add the products of a tile of pairs of items, at a + a_more and b + b_more, to a running sum.

    The sum is total * 2^top, and the sum of companions weighted by their items mass * 2^top, with `top` the largest term.
    """
    terms = tl.load(charts + a + a_more) + tl.load(charts + b + b_more)
    largest = tl.maximum(top, tl.max(terms, 0))
    total, mass, base = _rescale(largest, top, total, mass, COMPANION, SOFT)
    less = terms - base[None, :]
    weights = tl.exp2(less.to(SOFT))
    if COMPANION:
        mean = tl.load(means + a + a_more) + tl.load(means + b + b_more)
        if COMPANION == 2:
            mean -= tl.where(less > float("-inf"), less, 0.0) * 0.6931471805599453
        mass += tl.sum(weights.to(tl.float64) * mean, 0)
    return largest, total + tl.sum(weights, 0), mass


@jit()
def _add_one(term, mean, top, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """Add one item to a running sum."""
    largest = tl.maximum(top, term)
    total, mass, base = _rescale(largest, top, total, mass, COMPANION, SOFT)
    less = term - base
    weight = tl.exp2(less.to(SOFT))
    if COMPANION == 2:
        mean -= tl.where(less > float("-inf"), less, 0.0) * 0.6931471805599453
    if COMPANION:
        mass += weight.to(tl.float64) * mean
    return largest, total + weight, mass


@jit()
def _rescale(largest, top, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """Bring a running sum to another largest term; returns also that term, or 0 for -inf."""
    base = tl.where(largest > float("-inf"), largest, 0.0)
    scale = tl.exp2((top - base).to(SOFT))
    if COMPANION == 2:  # mass holds log p_t relative to `top`
        mass += total.to(tl.float64) * tl.where(top > float("-inf"), base - top, 0.0) * 0.6931471805599453
    if COMPANION:
        mass *= scale.to(tl.float64)
    return total * scale, mass, base


@jit()
def _finish(top, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """The log of a running sum, and its companion."""
    log_total = log2(total, SOFT)
    if COMPANION:
        mass = tl.where(total > 0.0, mass / total.to(tl.float64), 0.0)
    if COMPANION == 2:
        mass += tl.where(total > 0.0, log_total, 0.0) * 0.6931471805599453
    return top + log_total, mass


@jit()
def _put(charts, means, at, mask, value, mean, COMPANION: tl.constexpr):
    tl.store(charts + at, value, mask=mask)
    if COMPANION:
        tl.store(means + at, mean, mask=mask)


@jit()
def log2(x, SOFT: tl.constexpr):
    """The base-2 log in float64 of numbers that are at least 0, to the precision of their own type."""
    if SOFT == tl.float32:
        # the exponent apart, so that a log of a large number has as many digits as one near 1
        bits = x.to(tl.int32, bitcast=True)
        mantissa = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
        log = tl.log2(mantissa).to(tl.float64) + ((bits >> 23) - 127).to(tl.float64)
    else:
        log = tl.log2(x)
    return tl.where(x > 0.0, log, float("-inf"))
