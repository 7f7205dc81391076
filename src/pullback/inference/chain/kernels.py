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

from pullback.inference.chain.downward import AHEAD, add_structure, back
from pullback.inference.compile import kernel, lean
from pullback.inference.hypergraph.packing import clear
from pullback.inference.hypergraph.vectors import load_wide, log, narrow, select_positive, splat_wide, widen
from pullback.inference.lanes import BYTES, aligned, exp, exp_or_nan, fma, larger, load, splat, store, where_larger
from pullback.inference.rows import (
    any_nonzero,
    count_nan,
    keep_first,
    largest_of,
    load_first,
    prefetch,
    prefetch_to_write,
    store_first,
)

LOG_PARTITION, MARGINALS, SLOPE = range(3)


@lean
def _weigh(scores, base, count, shift, held, at, out, there):
    """Write w = exp(s - shift) for a matrix of `count` scores, NaN for NaN, and zeros behind it; returns the largest score.

    Memory is asked for ahead of its use: scores, and the results at `there`, which the way back writes.
    """
    lanes = BYTES // scores.itemsize
    off, most, whole = splat(scores, shift), splat(scores, -np.inf), count - count % lanes
    for p in range(0, whole, lanes):
        x = load(scores, base + p)
        prefetch(scores, base + p + AHEAD)
        prefetch_to_write(out, there + p)
        most = larger(x, most)
        store(held, at + p, exp_or_nan(x - off))
    x = load_first(scores, base + whole, count - whole, splat(scores, -np.inf))
    store(held, at + whole, exp_or_nan(x - off))
    store(held, at + count, splat(scores, 0.0))
    return np.float64(largest_of(larger(x, most)))


@lean
def _multiply(tags, alpha, total, row, held, at, least):
    """Write sum_a alpha(a) w(a, b) to `total`; returns the largest of these sums, +inf if one is not above `least`."""
    lanes = BYTES // alpha.itemsize
    zero, limit, top = splat(alpha, 0.0), splat(alpha, least), splat(alpha, 0.0)
    one, small = splat(alpha, 1.0), splat(alpha, 0.0)
    for k in range(0, tags, lanes):
        even, odd, width = zero, zero, min(lanes, tags - k)
        for a in range(0, tags - 1, 2):
            even = fma(splat(alpha, alpha[row + a]), load(held, at + a * tags + k), even)
            odd = fma(splat(alpha, alpha[row + a + 1]), load(held, at + (a + 1) * tags + k), odd)
        if tags % 2 == 1:
            even = fma(splat(alpha, alpha[row + tags - 1]), load(held, at + (tags - 1) * tags + k), even)
        even = keep_first(even + odd, width, zero)
        top = larger(even, top)
        small = where_larger(keep_first(even, width, one), limit, small, one)
        store(total, row + k, even)
    return alpha.dtype.type(np.inf) if any_nonzero(small) else largest_of(top)


@lean
def _step(scores, base, tags, state, value, alpha, total, row, after, held, at, out, there):
    """One position: p(a given b) is alpha(a) held(a, b) / total(b), and the next alpha is at `after`.

    `state[0]` is the logarithm by which alpha is too small; `state[1]` says whether `value` has the logarithms of all tags;
    `state[2]` is the largest score of the position before, which serves for this one if the two are not far apart.
    Returns +inf where the scores hold NaN or +inf.
    """
    least, far = (1e-25, 60.0) if scores.itemsize == 4 else (1e-200, 600.0)
    shift = state[2]
    most = _weigh(scores, base, tags * tags, shift, held, at, out, there)
    state[2] = most if -np.inf < most < np.inf else 0.0
    top = _multiply(tags, alpha, total, row, held, at, least)
    if not (top < np.inf and most < shift + far):
        shift = state[2]
        _weigh(scores, base, tags * tags, shift, held, at, out, there)
        top = _multiply(tags, alpha, total, row, held, at, least)
    if top < np.inf:
        _scale(tags, alpha, total, row, after, 1.0 / top)
        state[0] += shift + math.log(top)
        state[1] = 0.0
        return most
    if state[1] == 0.0:
        for a in range(tags):
            value[a] = state[0] + math.log(alpha[row + a]) if alpha[row + a] > 0.0 else -np.inf
    nan = _careful_step(scores, base, tags, value, alpha, total, row, held, at)
    _enter(scores, tags, state, value, alpha, after)
    return np.inf if nan else most


@lean
def _scale(tags, alpha, total, row, after, factor):
    """The next alpha: the sums times a factor."""
    inverse = splat(alpha, factor)
    for k in range(0, tags, BYTES // alpha.itemsize):
        store(alpha, after + k, load(total, row + k) * inverse)


@lean
def _enter(scores, tags, state, value, alpha, row):
    """Alpha from the logarithms of all tags."""
    top = -np.inf
    for b in range(tags):
        top = max(top, value[b])
    state[0], state[1] = top, 1.0
    shift = splat_wide(top if top > -np.inf else 0.0, scores)
    for k in range(0, tags, BYTES // scores.itemsize):
        store(alpha, row + k, exp(narrow(load_wide(value, k, scores) - shift, scores)))


@lean
def _careful_step(scores, base, tags, value, alpha, total, row, held, at):
    """The same with the maximum of each sum taken out, written to the second half of `value`; returns whether NaN was read."""
    lanes, room = BYTES // scores.itemsize, len(value) // 2
    least, nothing, zero = splat(scores, -np.inf), splat_wide(-np.inf, scores), splat_wide(0.0, scores)
    nan = splat(scores, 0.0)
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
            w = exp(narrow(x - finite, scores))
            sums = sums + w
            store_first(held, at + a * tags + k, width, w)
        store(total, row + k, sums)
        some = select_positive(sums, sums, splat(scores, 1.0))
        store(value, room + k, where_larger(best, nothing, finite + widen(log(some)), nothing))
    for b in range(room):
        value[b], alpha[row + b] = value[room + b], 1.0
    return any_nonzero(nan)


@lean
def _forward(scores, begin, length, tags, keep, state, value, alpha, total, held, pitch, out):
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
    _enter(scores, tags, state, value, alpha, row)
    for i in range(1, length):
        base, at, after = begin + i * tags * tags, i * pitch * keep, row + room * keep
        most = _step(scores, base, tags, state, value, alpha, total, row, after, held, at, out, base * keep)
        worst, row = max(worst, most), after
    return row, worst


@lean
def _last(tags, alpha, row, reached):
    """The probability of each last tag; returns the logarithm of alpha's sum."""
    total = 0.0
    for b in range(tags):
        total += alpha[row + b]
    for b in range(len(reached)):
        reached[b] = alpha[row + b] / total if total > 0.0 and b < tags else 0.0
    return math.log(total) if total > 0.0 else -np.inf


@kernel
def sums(worker, workers, tags, scores, lengths, what, z, out, log_z, log_p, codes):
    """Write log-partitions and, by `what`, marginals, or z less the marginals and the log-probabilities of z.

    `scores`, `z` and `out` are `[B, n * tags * tags]`; `codes[b]` is not zero where the scores of an example hold
    NaN or +inf, or no structure is feasible.
    """
    cells, lanes = tags * tags, BYTES // scores.itemsize
    n, room = scores.shape[1] // cells, -(-tags // lanes) * lanes
    keep, sign, pitch = what != LOG_PARTITION, -1 if what == SLOPE else 1, -(-cells // lanes) * lanes + lanes
    flat, flat_z, flat_out = scores.reshape(-1), z.reshape(-1), out.reshape(-1)
    value, reached, rate = aligned(2 * room, np.empty(0)), aligned(room, scores), aligned(room + lanes, scores)
    rows, state = (n + 1 if keep else 1), np.empty(3)
    alpha, total, held = aligned(rows * room, scores), aligned(rows * room, scores), aligned(rows * pitch, scores)
    for b in range(worker, len(scores), workers):
        length, begin = lengths[b], b * n * cells
        if length > 0:
            last, worst = _forward(flat, begin, length, tags, keep, state, value, alpha, total, held, pitch, flat_out)
            log_z[b] = state[0] + _last(tags, alpha, last, reached)
            codes[b] = worst == np.inf or log_z[b] == -np.inf
        if keep:
            for i in range(length - 1, 0, -1):
                back(tags, alpha, total, i * room, reached, rate, held, i * pitch, flat_out, begin + i * cells, sign)
            clear(flat_out, begin, begin + min(length, 1) * cells)
            clear(flat_out, begin + length * cells, begin + n * cells)
            for tag in range(tags * min(length, 1)):
                flat_out[begin + tag] = sign * reached[tag]
            if what == SLOPE:
                log_p[b] = add_structure(flat, flat_z, flat_out, begin, begin + n * cells) - log_z[b]
