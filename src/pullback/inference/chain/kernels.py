"""Tag sequences on the CPU, one example at a time: the tags of a position are the lanes of SIMD vectors.

Let v(i, b) be the log-sum over the sequences that end with tag b at position i. A step takes it apart,

    v(i, b) = top + most + log sum_a alpha(a) w(a, b),   alpha(a) = exp(v(i - 1, a) - top),   w(a, b) = exp(s(i, a, b) - most),

so that each score costs one exponential and one multiplication, and the next alpha are the sums over the largest of them.
Where a sum is so small that terms may have been lost to underflow (masks, tags that cannot follow each other, very large
scores), the step is done again with the maximum of each sum.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import (
    aligned,
    exp,
    fma,
    lanes_in,
    larger,
    load,
    load_half,
    splat,
    splat_half,
    store,
    where_larger,
)
from pullback.inference._numba.packing import clear
from pullback.inference._numba.rows import (
    AHEAD,
    any_nonzero,
    count_nan,
    keep_first,
    largest_of,
    load_first,
    prefetch,
    prefetch_to_write,
    splat_four,
    splat_like,
    store_first,
)
from pullback.inference._numba.vectors import load_wide, log, narrow, select_positive, splat_wide, widen
from pullback.inference.chain.downward import add_structure, back, draw
from pullback.inference.chain.exponential import exp_or_nan
from pullback.inference.front.modes import Mode

MANY = 64  # tags from which on most of their exponentials are nothing if any are


@subroutine
def _weigh(scores, base, count, shift, z, out, at):
    """Write w = exp(s - shift) for a matrix of `count` scores, NaN for NaN; returns the largest score.

    Memory is asked for ahead of its use: scores and results, and what the way back reads of z.
    """
    lanes, off, most = lanes_in(scores), splat(scores, shift), splat(scores, -np.inf)
    if count < lanes:
        most = load_first(scores, base, count, most)
        store_first(out, at, count, exp_or_nan(most - off))
    else:
        for p in range(0, count - lanes, lanes):
            x = load(scores, base + p)
            prefetch(scores, base + p + AHEAD)
            prefetch_to_write(out, at + p + AHEAD)
            prefetch(z, base + p)
            most = larger(x, most)
            store(out, at + p, exp_or_nan(x - off))
        x = load(scores, base + count - lanes)  # which overlaps the vector before
        most = larger(x, most)
        store(out, at + count - lanes, exp_or_nan(x - off))
    return np.float64(largest_of(most))


@subroutine
def multiply(tags, alpha, row, weights, at, total, place, least, factors, after):
    """Write sum_a alpha(a) w(a, b) to `total` at `place`; returns the largest of these sums, +inf if one is not above `least`.

    With factors, or None, the largest is that of the sums times them.
    """
    lanes, zero, one = lanes_in(weights) // 2, splat_half(weights, 0.0), splat_half(weights, 1.0)
    limit, top, small = splat_half(weights, least), zero, zero
    for k in range(0, tags, 3 * lanes):
        x, y, z = _columns(tags, alpha, row, weights, at + k, tags - k)
        store(total, place + k, x)
        top, small = larger(_times(x, factors, after + k), top), where_larger(keep_first(x, tags - k, one), limit, small, one)
        if k + lanes < tags:
            store(total, place + k + lanes, y)
            top = larger(_times(y, factors, after + k + lanes), top)
            small = where_larger(keep_first(y, tags - k - lanes, one), limit, small, one)
        if k + 2 * lanes < tags:
            store(total, place + k + 2 * lanes, z)
            top = larger(_times(z, factors, after + k + 2 * lanes), top)
            small = where_larger(keep_first(z, tags - k - 2 * lanes, one), limit, small, one)
    return weights.dtype.type(np.inf) if any_nonzero(small) else largest_of(top)


@subroutine
def _times(x, factors, at):
    """Half a vector times factors, which may be None."""
    return x if factors is None else x * load_half(factors, at)


@subroutine
def _columns(tags, alpha, row, out, at, width):
    """The sums of three vectors of tags, of which `width` exist; what is read beyond them is not summed.

    Rows that may be the last of the array are read no further than they go.
    """
    lanes, zero = lanes_in(out) // 2, splat_half(out, 0.0)
    x = y = z = u = v = w = zero
    inner = tags // 2 * 2 if at + tags * tags + 3 * lanes <= len(out) else 0
    for a in range(0, inner, 2):  # by even and odd rows
        p, q, i, j = splat_like(alpha, row + a, x), splat_like(alpha, row + a + 1, x), at + a * tags, at + (a + 1) * tags
        x, u = fma(p, load_half(out, i), x), fma(q, load_half(out, j), u)
        y, v = fma(p, load_half(out, i + lanes), y), fma(q, load_half(out, j + lanes), v)
        z, w = fma(p, load_half(out, i + 2 * lanes), z), fma(q, load_half(out, j + 2 * lanes), w)
    for a in range(inner, tags):
        p, i = splat_like(alpha, row + a, x), at + a * tags
        x = fma(p, load_first(out, i, width, zero), x)
        y = fma(p, load_first(out, i + lanes, width - lanes, zero), y)
        z = fma(p, load_first(out, i + 2 * lanes, width - 2 * lanes, zero), z)
    x, y, z = keep_first(x + u, width, zero), keep_first(y + v, width - lanes, zero), z + w
    return x, y, keep_first(z, width - 2 * lanes, zero)


@subroutine
def limits(scores):
    """A sum that is small enough to be doubted, and how far the logarithm of a scale may be off.

    What an alpha below the smallest number would add, exp(far) times that number, must be nothing beside the sum.
    """
    return (1e-20, 20.0) if lanes_in(scores) == 16 else (1e-200, 200.0)


@subroutine
def _step(scores, base, tags, state, value, alpha, total, row, after, z, out, at):
    """One position: p(a given b) is alpha(a) w(a, b) / total(b), with w at `at`, and the next alpha is at `after`.

    `state[0]` is the logarithm by which alpha is too small; `state[1]` says whether `value` has the logarithms of all tags;
    `state[2]` is the largest score of the position before, which serves for this one if the two are not far apart.
    Returns +inf where the scores hold NaN or +inf.
    """
    least, far = limits(scores)
    shift = state[2]
    most = _weigh(scores, base, tags * tags, shift, z, out, at)
    state[2] = most if -np.inf < most < np.inf else 0.0
    top = multiply(tags, alpha, row, out, at, total, row, least, None, 0)
    if not (top < np.inf and most < shift + far):
        shift = state[2]
        _weigh(scores, base, tags * tags, shift, z, out, at)
        top = multiply(tags, alpha, row, out, at, total, row, least, None, 0)
    if top < np.inf:
        scale(tags, total, row, 1.0 / top, None, alpha, after)
        state[0] += shift + math.log(top)
        state[1] = 0.0
        return most
    if state[1] == 0.0:
        for a in range(tags):
            value[a] = state[0] + math.log(alpha[row + a]) if alpha[row + a] > 0.0 else -np.inf
    nan = careful_step(scores, base, tags, value, alpha, total, row, out, at)
    enter(scores, tags, state, value, alpha, after)
    return np.inf if nan else most


@subroutine
def scale(tags, total, row, factor, factors, alpha, after):
    """The next alpha: the sums times a factor, and times factors, or None."""
    inverse = splat_half(alpha, factor)
    for k in range(0, tags, lanes_in(alpha) // 2):  # as they were written
        store(alpha, after + k, _times(load_half(total, row + k) * inverse, factors, after + k))


@subroutine
def enter(scores, tags, state, value, alpha, row):
    """Alpha from the logarithms of all tags."""
    most = splat_wide(-np.inf, scores)
    for k in range(0, tags, lanes_in(scores)):
        most = larger(load_wide(value, k, scores), most)
    top = largest_of(most)
    state[0], state[1] = top, 1.0
    shift = splat_wide(top if top > -np.inf else 0.0, scores)
    for k in range(0, tags, lanes_in(scores)):
        store(alpha, row + k, exp(narrow(load_wide(value, k, scores) - shift, scores)))


@subroutine
def careful_step(scores, base, tags, value, alpha, total, row, out, at):
    """The same with the maximum of each sum taken out, from logarithms to logarithms; returns whether NaN was read.

    The weights, relative to the maximum of their sum, are written to `out`, or not at all if that is None.
    """
    lanes, room = lanes_in(scores), len(value) // 2
    least, nothing, zero = splat(scores, -np.inf), splat_wide(-np.inf, scores), splat_wide(0.0, scores)
    nan, one, nothing_left = splat(scores, 0.0), splat_wide(1.0, scores), splat_wide(-30.0 if lanes == 16 else -60.0, scores)
    for k in range(0, tags, lanes):
        width = min(lanes, tags - k)
        best = nothing
        for a in range(tags):
            s = load_first(scores, base + a * tags + k, width, least)
            nan = count_nan(s, nan)
            best = larger(splat_wide(value[a], scores) + widen(s), best)
        finite = where_larger(best, nothing, best, zero)
        sums = splat(scores, 0.0)
        for a in range(tags):
            x = splat_wide(value[a], scores) + widen(load_first(scores, base + a * tags + k, width, least))
            if out is None:
                if tags <= MANY or any_nonzero(where_larger(x - finite, nothing_left, one, zero)):
                    sums = sums + exp(narrow(x - finite, scores))
            else:
                w = exp(narrow(x - finite, scores))
                sums = sums + w
                store_first(out, at + a * tags + k, width, w)
        store(total, row + k, sums)
        some = select_positive(sums, sums, splat(scores, 1.0))
        store(value, room + k, where_larger(best, nothing, finite + widen(log(some)), nothing))
    for b in range(room):
        value[b], alpha[row + b] = value[room + b], 1.0
    return any_nonzero(nan)


@subroutine
def forward(scores, begin, length, tags, keep, state, value, alpha, total, z, out):
    """Go through all positions; returns the row of the last alpha, and +inf where the scores hold NaN or +inf.

    The steps' weights are kept, or written over each other.
    """
    worst, room = -np.inf, len(value) // 2
    for b in range(room):
        value[b] = -np.inf
    for b in range(tags):
        x = np.float64(scores[begin + b])  # of position 0 only row 0 exists
        value[b] = x
        worst = max(worst, x) if x == x else np.inf
    row, state[2] = room * keep, 0.0
    enter(scores, tags, state, value, alpha, row)
    for i in range(1, length):
        base, after = begin + i * tags * tags, row + room * keep
        most = _step(scores, base, tags, state, value, alpha, total, row, after, z, out, base * keep)
        worst, row = max(worst, most), after
    return row, worst


@subroutine
def last_tags(tags, alpha, row, total, before, rate):
    """Write the rate of each last tag; returns the logarithm of alpha's sum."""
    whole = 0.0
    for b in range(tags):
        whole += alpha[row + b]
    for b in range(len(rate)):
        real = b < tags and alpha[row + b] > 0.0
        rate[b] = alpha[row + b] / whole / total[before + b] if real else 0.0
    return math.log(whole) if whole > 0.0 else -np.inf


@subroutine
def _add_first(scores, z, out, begin, tags):
    """Add z to the parts of position 0; returns the sum of s z over those that z has."""
    total = 0.0
    for p in range(begin, begin + tags):
        if z[p] != 0:
            out[p] += z[p]
            total += np.float64(scores[p]) * np.float64(z[p])
    return total


@kernel
def sums(worker, workers, tags, scores, lengths, mode, z, seeds, out, log_z, log_p, codes):
    """Write log-partitions and, by `mode`, marginals, samples, or z less the marginals and the log-probabilities of z.

    `scores`, `z` and `out` are `[B, n, tags, tags]`; `codes[b]` is not zero where the scores of an example hold NaN or +inf,
    no structure is feasible, or the length is not from 0 to n.
    """
    cells, lanes = tags * tags, lanes_in(scores)
    n, room = scores.shape[1], -(-tags // lanes) * lanes
    keep, sign = mode != Mode.LOG_PARTITION, -1 if mode == Mode.LOG_PROB else 1
    flat, flat_z = scores.reshape(-1), z.reshape(-1)
    flat_out = out.reshape(-1) if keep else aligned(cells + 2 * lanes, scores)
    value, above, rate = aligned(2 * room, np.empty(0)), aligned(room, scores), aligned(room, scores)
    rows, state = (n + 1 if keep else 1), np.empty(3)
    alpha, total = aligned(rows * room, scores), aligned(rows * room, scores)
    total[:room], above[:] = 1.0, 0.0  # before the first position there is nothing to divide by
    chosen = np.empty(n if mode == Mode.SAMPLE else 0, np.int64)
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * n * cells
        codes[b], last = lengths[b] != length, room
        if length > 0:
            last, worst = forward(flat, begin, length, tags, keep, state, value, alpha, total, flat_z, flat_out)
            log_z[b] = state[0] + last_tags(tags, alpha, last, total, last - room * keep, rate)
            codes[b] |= worst == np.inf or log_z[b] == -np.inf
        if mode == Mode.SAMPLE:
            draw(tags, length * (not codes[b]), alpha, last, room, flat_out, begin, begin + n * cells, seeds[b], chosen)
        elif keep:
            for i in range(length - 1, 0, -1):
                at = begin + i * cells
                if 2 * tags >= lanes:
                    back(tags, alpha, total, i * room, room, above, rate, flat_out, at, splat_half(out, sign))
                else:
                    back(tags, alpha, total, i * room, room, above, rate, flat_out, at, splat_four(out, sign))
            clear(flat_out, begin, begin + min(length, 1) * cells)
            clear(flat_out, begin + length * cells, begin + n * cells)
            for tag in range(tags * min(length, 1)):
                flat_out[begin + tag] = sign * rate[tag]
            if mode == Mode.LOG_PROB:
                log_p[b] = _add_first(flat, flat_z, flat_out, begin, tags * min(length, 1)) - log_z[b]
                log_p[b] += add_structure(flat, flat_z, flat_out, begin + min(length, 1) * cells, begin + length * cells)
