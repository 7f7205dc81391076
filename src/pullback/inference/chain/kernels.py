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

from pullback.inference.compile import kernel, lean
from pullback.inference.hypergraph.vectors import load_wide, log, narrow, select_positive, splat_wide, widen
from pullback.inference.lanes import BYTES, aligned, exp, larger, load, splat, store, where_larger
from pullback.inference.rows import any_nonzero, count_nan, keep_first, largest_of, load_first, store_first, sum_of

LOG_PARTITION, MARGINALS, SLOPE = range(3)


@lean
def _weigh(scores, base, count, held, at):
    """Write w = exp(s - most) for a matrix of `count` scores, and zeros behind it; returns `most`, +inf in case of a NaN."""
    lanes = BYTES // scores.itemsize
    least, nan = splat(scores, -np.inf), splat(scores, 0.0)
    most, whole = least, count - count % lanes
    for p in range(0, whole, lanes):
        x = load(scores, base + p)
        most, nan = larger(x, most), count_nan(x, nan)
    x = load_first(scores, base + whole, count - whole, least)
    most, nan = larger(x, most), count_nan(x, nan)
    top = largest_of(most)
    shift = splat(scores, top if top > -np.inf else 0.0)
    for p in range(0, whole, lanes):
        store(held, at + p, exp(load(scores, base + p) - shift))
    store(held, at + whole, exp(x - shift))
    store(held, at + count, splat(scores, 0.0))
    return np.inf if any_nonzero(nan) else np.float64(top)


@lean
def _multiply(tags, alpha, total, row, held, at, least):
    """Write sum_a alpha(a) w(a, b) to `total`; returns the largest of these sums, 0 if one is not above `least`."""
    lanes = BYTES // alpha.itemsize
    zero, limit, top = splat(alpha, 0.0), splat(alpha, least), splat(alpha, 0.0)
    one, small = splat(alpha, 1.0), splat(alpha, 0.0)
    for k in range(0, tags, lanes):
        even, odd, width = zero, zero, min(lanes, tags - k)
        for a in range(0, tags - 1, 2):
            even = even + splat(alpha, alpha[row + a]) * load(held, at + a * tags + k)
            odd = odd + splat(alpha, alpha[row + a + 1]) * load(held, at + (a + 1) * tags + k)
        if tags % 2 == 1:
            even = even + splat(alpha, alpha[row + tags - 1]) * load(held, at + (tags - 1) * tags + k)
        even = keep_first(even + odd, width, zero)
        top = larger(even, top)
        small = where_larger(limit, keep_first(even, width, one), one, small)
        store(total, row + k, even)
    return alpha.dtype.type(0.0) if any_nonzero(small) else largest_of(top)


@lean
def _step(scores, base, tags, state, value, alpha, total, row, after, held, at):
    """One position: p(a given b) is alpha(a) held(a, b) / total(b), and the next alpha is at `after`.

    `state[0]` is the logarithm by which alpha is too small; `state[1]` says whether `value` has the logarithms of all tags.
    Returns +inf where the scores hold NaN or +inf.
    """
    lanes = BYTES // scores.itemsize
    most = _weigh(scores, base, tags * tags, held, at)
    top = _multiply(tags, alpha, total, row, held, at, 1e-25 if scores.itemsize == 4 else 1e-200)
    if top > 0.0:
        inverse = splat(scores, 1.0 / top)
        for k in range(0, tags, lanes):
            store(alpha, after + k, load(total, row + k) * inverse)
        state[0] += most + math.log(top)
        state[1] = 0.0
        return most
    if state[1] == 0.0:
        for a in range(tags):
            value[a] = state[0] + math.log(alpha[row + a]) if alpha[row + a] > 0.0 else -np.inf
    _careful_step(scores, base, tags, value, alpha, total, row, held, at)
    _enter(scores, tags, state, value, alpha, after)
    return most


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
    """The same with the maximum of each sum taken out; the second half of `value` is for the new values."""
    lanes, room = BYTES // scores.itemsize, len(value) // 2
    least, nothing, zero = splat(scores, -np.inf), splat_wide(-np.inf, scores), splat_wide(0.0, scores)
    for k in range(0, tags, lanes):
        width = min(lanes, tags - k)
        best = nothing
        for a in range(tags):
            x = splat_wide(value[a], scores) + widen(load_first(scores, base + a * tags + k, width, least))
            best = larger(x, best)
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


@lean
def _forward(scores, begin, length, tags, keep, state, value, alpha, total, held, pitch):
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
    row = room * keep
    _enter(scores, tags, state, value, alpha, row)
    for i in range(1, length):
        base, at = begin + i * tags * tags, i * pitch * keep
        worst = max(worst, _step(scores, base, tags, state, value, alpha, total, row, row + room * keep, held, at))
        row += room * keep
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


@lean
def _back(tags, alpha, total, row, reached, rate, held, at, out, place, sign):
    """Write the probabilities of a position's parts times `sign`; `reached` becomes that of the tags before."""
    lanes, cells = BYTES // held.itemsize, tags * tags
    zero = splat(held, 0.0)
    for k in range(0, tags, lanes):
        sums = load(total, row + k)
        store(rate, k, select_positive(sums, load(reached, k) / sums, zero))
    for a in range(tags):
        before, factor = zero, splat(held, sign * alpha[row + a])
        for k in range(0, tags, lanes):
            p = load(held, at + a * tags + k) * (factor * load(rate, k))
            before = before + p
            if a * tags + k + lanes <= cells:  # what is written beyond the row is written again with the next one
                store(out, place + a * tags + k, p)
            else:
                store_first(out, place + a * tags + k, tags - k, p)
        reached[a] = sign * sum_of(before)


@lean
def _add_structure(scores, z, out, start, stop):
    """Add z to `out`; returns the sum of s z over the parts that z has, in float64. Most vectors of z are zero."""
    lanes, total = BYTES // scores.itemsize, 0.0
    for p in range(start, stop, lanes):
        if p + lanes > stop or any_nonzero(load(z, p)):
            for q in range(p, min(p + lanes, stop)):
                if z[q] != 0:
                    total += np.float64(scores[q]) * np.float64(z[q])
                    out[q] += z[q]
    return total


@lean
def _zero(out, start, stop):
    for p in range(start, stop):
        out[p] = 0.0


@kernel
def sums(worker, workers, tags, scores, lengths, what, z, out, log_z, score, codes):
    """Write log-partitions and, by `what`, marginals, or z less the marginals and the scores of z.

    `scores`, `z` and `out` are `[B, n * tags * tags]`; `codes[b]` is not zero where the scores of an example hold
    NaN or +inf, or no structure is feasible.
    """
    cells, lanes = tags * tags, BYTES // scores.itemsize
    n, room = scores.shape[1] // cells, -(-tags // lanes) * lanes
    keep, sign, pitch = what != LOG_PARTITION, -1 if what == SLOPE else 1, -(-cells // lanes) * lanes + lanes
    flat, flat_z, flat_out = scores.reshape(-1), z.reshape(-1), out.reshape(-1)
    value, reached, rate = aligned(2 * room, np.empty(0)), aligned(room, scores), aligned(room, scores)
    rows, state = (n + 1 if keep else 1), np.empty(2)
    alpha, total, held = aligned(rows * room, scores), aligned(rows * room, scores), aligned(rows * pitch, scores)
    for b in range(worker, len(scores), workers):
        length, begin = lengths[b], b * n * cells
        if length > 0:
            last, worst = _forward(flat, begin, length, tags, keep, state, value, alpha, total, held, pitch)
            log_z[b] = state[0] + _last(tags, alpha, last, reached)
            codes[b] = worst == np.inf or log_z[b] == -np.inf
        if keep:
            for i in range(length - 1, 0, -1):
                _back(tags, alpha, total, i * room, reached, rate, held, i * pitch, flat_out, begin + i * cells, sign)
            _zero(flat_out, begin, begin + min(length, 1) * cells)
            _zero(flat_out, begin + length * cells, begin + n * cells)
            for tag in range(tags * min(length, 1)):
                flat_out[begin + tag] = sign * reached[tag]
            if what == SLOPE:
                score[b] = _add_structure(flat, flat_z, flat_out, begin, begin + n * cells)
