"""The inside sweep on a GPU: sums over projective trees, in Triton, one program a sentence.

README.md names the items, cuda_layout.py the charts and lanes, cuda_numbers.py the numbers.

With each item may go a companion, a mean over the item's derivations. With the probability p_t of each of its splits,

    slope of the item's log:   sum_t p_t (slopes of the two parts),              the mean of the direction over the arcs;
    entropy of the item:       sum_t p_t (entropies of the two parts - log p_t).

Both are in float64, and sums without cancellation, whatever the size of the scores.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.eisner.cuda_layout import (
    beyond,
    chart_sizes,
    charts_of,
    empty_charts,
    fill,
    lay_out_weights,
    length_of,
    read_lanes,
    spans_of,
)
from pullback.inference.eisner.cuda_numbers import load, log2, log2_of, normal, power, store, zeros

ALONE, SLOPE, ENTROPY = 0, 1, 2
_SLOPE, _ENTROPY = constant(SLOPE), constant(ENTROPY)


@jit(do_not_specialize=["batch", "n", "multiroot"])
def log_partition(
    scores, lengths, out, scratch, mean_scratch, batch, n, multiroot,
    COMPANION: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the log-partitions of `[B, n, n]` scores, or, with the companion ENTROPY, the entropies.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        out: `[B]`, float64, to write; NaN for a sentence with NaN, +inf or no tree.
        scratch: charts of int64 for each program.
        mean_scratch: charts of float64 for each program, if there are companions.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        COMPANION: ALONE or ENTROPY.
        PARTS: elements a number has in `scratch`.
        ROWS: splits looked at together.
        LANES: spans looked at together, on both sides.
    """
    SOFT: tl.constexpr = scores.dtype.element_ty
    size, guard = chart_sizes(n, ROWS, LANES)
    charts = charts_of(scratch, size, guard, PARTS)
    means = charts_of(mean_scratch, size, guard, 1)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = scores + tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        empty_charts(charts, size, guard, length, SOFT, LANES)
        if COMPANION:
            fill(means - guard, 7 * size + 2 * guard, 0.0, 32 * LANES)
        shift, garbled = lay_out_weights(matrix, length, n, charts, size, SOFT, 32, LANES // 2)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(width, length, n + 1, multiroot, charts, means, size, COMPANION, SOFT, ROWS, LANES)
            tl.debug_barrier()
        whole = length * (n + 1)
        m, e = load(charts, whole, 0, True, SOFT)
        result = shift + log2_of(m, e, SOFT) * 0.6931471805599453  # log(2)
        if COMPANION:
            result = tl.maximum(tl.load(means + whole), 0.0)
        sound = (garbled == 0) & (m > 0.0) & (beyond(lengths, sentence, n) == 0)
        tl.store(out + sentence, tl.where(sound, result, float("nan")))
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
        read = read_lanes(real, LANES)
        near, far = start[None, :], (width - 1) * pitch + start[None, :] + 1
        side_near = near + tl.where(left, size, 2 * size)[None, :] + pitch
        side_far = far + tl.where(left, 3 * size, 0)[None, :]
        total, top = zeros(LANES, SOFT)
        mass = tl.zeros([LANES], tl.float64)
        between_total, between_top, between_mass = total, top, mass
        for split in range(0, width, ROWS):
            up, down = (split + row) * pitch, (split + row) * (1 - pitch)
            between_total, between_top, between_mass = _add_pairs(
                charts, means, near, up, far + size, down, read,
                between_total, between_top, between_mass, COMPANION, SOFT,
            )  # fmt: skip
            total, top, mass = _add_pairs(
                charts, means, side_near, up, side_far, down, read, total, top, mass, COMPANION, SOFT
            )  # fmt: skip
        at = width * pitch + start
        side = tl.where(left, size, 0)
        m, e, mean = _finish(between_total, between_top, between_mass, COMPANION, SOFT)
        _put(charts, means, 4 * size + at, real & ~left, m, e, mean, COMPANION, SOFT)
        weight, weight_e = load(charts, 5 * size + side + at, 0, real, SOFT)
        m, e = normal(m * weight, e + weight_e, SOFT)
        if COMPANION == _SLOPE:
            mean += tl.load(means + 5 * size + side + at, mask=real)
        _put(charts, means, 2 * size + side + at, real, m, e, mean, COMPANION, SOFT)
        total, top, mass = _add(m, e, mean, total, top, mass, COMPANION, SOFT)
        m, e, mean = _finish(total, top, mass, COMPANION, SOFT)
        # a single root's right items are used nowhere but at the end
        used = real & (left | (start > 0) | (width == length) | (multiroot != 0))
        _put(charts, means, side + at, used, m, e, mean, COMPANION, SOFT)


@jit()
def _add_pairs(
    charts, means, a, a_more, b, b_more, read, total, top, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr
):  # fmt: skip
    """Add the products of a tile of pairs of items, at a + a_more and b + b_more, to a running sum.

    The sum is the number total * 2^(unit * top), with `top` the largest exponent; `mass` is the sum of companions weighted
    by their items, in the same unit.
    """
    m, e = load(charts, a, a_more, read, SOFT)
    other_m, other_e = load(charts, b, b_more, read, SOFT)
    e += other_e
    largest = tl.maximum(top, tl.max(e, 0))
    total, mass = _rescale(top - largest, total, mass, COMPANION, SOFT)
    weights = m * other_m * power(e - largest[None, :], SOFT)
    if COMPANION:
        mean = tl.load(means + a + a_more, mask=read) + tl.load(means + b + b_more, mask=read)
        mass += tl.sum(_with_companion(weights, mean, COMPANION, SOFT), 0)
    return total + tl.sum(weights, 0), largest, mass


@jit()
def _add(m, e, mean, total, top, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """Add one item to a running sum."""
    largest = tl.maximum(top, e)
    total, mass = _rescale(top - largest, total, mass, COMPANION, SOFT)
    weight = m * power(e - largest, SOFT)
    if COMPANION:
        mass += _with_companion(weight, mean, COMPANION, SOFT)
    return total + weight, largest, mass


@jit()
def _with_companion(weight, mean, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """Companions weighted by their items; an entropy also has the log of the item's share, before it is divided."""
    if COMPANION == _ENTROPY:
        mean -= log2(tl.where(weight > 0.0, weight, 1.0), SOFT) * 0.6931471805599453
    return weight.to(tl.float64) * mean


@jit()
def _rescale(down, total, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """Bring a running sum to another largest exponent, by a power of at most 0."""
    scale = power(down, SOFT)
    if COMPANION == _ENTROPY:
        mass -= total.to(tl.float64) * log2(scale, SOFT) * 0.6931471805599453
    if COMPANION:
        mass *= scale.to(tl.float64)
    return total * scale, mass


@jit()
def _finish(total, top, mass, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    """The number of a running sum, and its companion."""
    m, e = normal(total, top, SOFT)
    if COMPANION:
        whole = tl.where(total > 0.0, total, 1.0)
        mass = mass / whole.to(tl.float64)
        if COMPANION == _ENTROPY:
            mass += log2(whole, SOFT) * 0.6931471805599453
    return m, e, mass


@jit()
def _put(charts, means, at, mask, m, e, mean, COMPANION: tl.constexpr, SOFT: tl.constexpr):
    store(charts, at, m, e, mask, SOFT)
    if COMPANION:
        tl.store(means + at, mean, mask=mask)
