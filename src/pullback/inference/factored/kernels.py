"""Tag sequences with transitions apart, on the CPU: one example at a time, the tags of a position in SIMD lanes.

The steps are those of `chain/kernels.py`, with weights that all positions share, and those of the emissions apart:

    v(i, b) = top + most + log (e(b) sum_a alpha(a) w(a, b)),
    w(a, b) = exp(t(a, b) - r(b)),   e(b) = exp(s(i, b) + r(b) - most),

with the largest transition r(b) into each tag. So a step is a product of a vector and a matrix. The weights are made once for
consecutive examples with equal transitions.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, exp, fma, lanes_in, larger, load, splat, splat_half, store, where_larger
from pullback.inference._numba.packing import clear
from pullback.inference._numba.random_kernels import uniform
from pullback.inference._numba.rows import any_nonzero, count_nan, largest_of, load_first, splat_like, store_first
from pullback.inference._numba.vectors import load_wide, narrow, splat_wide, widen
from pullback.inference.chain.downward import add_structure, back_rows, pick, rates_before
from pullback.inference.chain.exponential import exp_or_nan
from pullback.inference.chain.kernels import (
    careful_step,
    enter,
    last_tags,
    limits,
    multiply,
    scale,
)
from pullback.inference.front.modes import Mode


@subroutine
def worst_of(scores, start, stop):
    """The largest of some numbers, +inf if one of them is NaN."""
    lanes, most, nan = lanes_in(scores), splat(scores, -np.inf), splat(scores, 0.0)
    for p in range(start, stop, lanes):
        x = load(scores, p) if p + lanes <= stop else load_first(scores, p, stop - p, splat(scores, -np.inf))
        most, nan = larger(x, most), count_nan(x, nan)
    return np.inf if any_nonzero(nan) else np.float64(largest_of(most))


@subroutine
def are_bad(scores, begin, n, length, tags):
    """Whether NaN or +inf is among the emissions, the start or the end of a sequence of a position or more."""
    worst = max(worst_of(scores, begin, begin + length * tags), worst_of(scores, begin + n * tags, begin + (n + 2) * tags))
    return worst == np.inf


@subroutine
def are_equal(scores, one, other, count):
    """Whether the numbers from two places on are the same, none of which is NaN."""
    lanes, unequal, yes, no = lanes_in(scores), splat(scores, 0.0), splat(scores, 1.0), splat(scores, 0.0)
    for p in range(0, count, lanes):
        width = min(lanes, count - p)
        x, y = load_first(scores, one + p, width, no), load_first(scores, other + p, width, no)
        unequal = where_larger(x, y, yes, where_larger(y, x, yes, unequal))
    return not any_nonzero(unequal)


@subroutine
def weigh(scores, base, tags, most, weights, turned):
    """Write the weights w(a, b) of transitions, the same with a and b exchanged, and the largest transition into each tag.

    Where all are forbidden the weights are 1: emissions forbid the tag then, and sums of zero would need care at each step.
    """
    lanes, least, nothing, one = lanes_in(scores), splat(scores, -np.inf), splat(scores, -np.inf), splat(scores, 1.0)
    for k in range(0, tags, lanes):
        width, best = min(lanes, tags - k), nothing
        for a in range(tags):
            best = larger(load_first(scores, base + a * tags + k, width, least), best)
        store(most, k, widen(best))
        finite = where_larger(best, nothing, best, splat(scores, 0.0))
        for a in range(tags):
            w = exp_or_nan(load_first(scores, base + a * tags + k, width, least) - finite)
            store_first(weights, a * tags + k, width, where_larger(best, nothing, w, one))
    for a in range(0, tags, lanes):  # by blocks, which caches hold
        for b in range(tags):
            for c in range(a, min(a + lanes, tags)):
                turned[b * tags + c] = weights[c * tags + b]


@subroutine
def emit(scores, at, tags, before, row, end, out, to):
    """Write emissions, plus what is before them, plus the scores at `end` if that is not -1; returns the largest."""
    lanes, least, zero, most = lanes_in(scores), splat(scores, -np.inf), splat(scores, 0.0), splat_wide(-np.inf, scores)
    for k in range(0, tags, lanes):
        width = min(lanes, tags - k)
        x = load_wide(before, row + k, scores) + widen(load_first(scores, at + k, width, least))
        if end >= 0:
            x = x + widen(load_first(scores, end + k, width, zero))
        store(out, to + k, x)
        most = larger(x, most)
    return largest_of(most)


@subroutine
def first_tags(scores, start, tags, out, row):
    """The scores of start in float64, -inf behind them."""
    for k in range(0, tags, lanes_in(scores)):
        width = min(lanes_in(scores), tags - k)
        store(out, row + k, widen(load_first(scores, start + k, width, splat(scores, -np.inf))))


@subroutine
def forward(scores, begin, n, length, tags, room, most, weights, state, value, alpha, total, careful, values, sums, patience):
    """Go through all positions; alpha of position i is in row i + 1, its sums before the emission in row i of `total`.
    Returns whether that was done: not if more steps need care than `patience` has.

    A step that needs care, of which `careful` tells, keeps the logarithms of the tags before it in `values` and of its sums in
    `sums`: its weights are exp(values(a) + t(a, b) - sums(b)), with alpha and total 1.

    `state[0]` is the logarithm by which alpha is too small, `state[2]` the same before the position's emissions, and `state[1]`
    says whether `value` has the logarithms of all tags.
    """
    least, far = limits(scores)
    least_top, end, base = math.exp(-far), begin + (n + 1) * tags, begin + (n + 2) * tags
    for b in range(len(value)):
        value[b] = -np.inf
    first_tags(scores, begin + n * tags, tags, value, 0)
    emit(scores, begin, tags, value, 0, end if length == 1 else -1, value, 0)
    enter(scores, tags, state, value, alpha, room)
    scale_of, scale_before = 1.0, 1.0  # logarithms are taken of products of sums, as they take as long as a step
    for i in range(1, length):
        at, row, after, last = begin + i * tags, i * room, (i + 1) * room, end if i == length - 1 else -1
        peak = emit(scores, at, tags, most, 0, last, sums, row)
        off = splat_wide(peak if peak > -np.inf else 0.0, scores)
        for k in range(0, tags, lanes_in(scores)):
            store(alpha, after + k, exp_or_nan(narrow(load_wide(sums, row + k, scores) - off, scores)))
        top = multiply(tags, alpha, row, weights, 0, total, row, least, alpha, after)
        # emissions that are rounded to zero must be nothing beside the next sums, too
        careful[i] = not least_top < top < np.inf
        if not careful[i]:
            scale(tags, total, row, 1.0 / top, alpha, alpha, after)
            state[2], scale_before = state[0], scale_of
            state[0], scale_of = state[0] + peak, scale_of * top
            if not 1e-200 < scale_of < 1e200:
                state[0], scale_of = state[0] + math.log(scale_of), 1.0
            state[1] = 0.0
            continue
        patience -= 1
        if patience < 0:
            return False
        if state[1] == 0.0:  # from the sums: an alpha may have been rounded to zero
            state[2] += math.log(scale_before)
            for b in range(tags):
                value[b] = state[2] + math.log(total[row - room + b]) + most[b]
            emit(scores, at - tags, tags, value, 0, -1, value, 0)
        for b in range(room):
            values[row + b] = value[b]
        careful_step(scores, base, tags, value, alpha, total, row, None, 0)
        for b in range(room):
            sums[row + b] = value[b]
            total[row + b] = 1.0 if value[b] > -np.inf else 0.0
        emit(scores, at, tags, value, 0, last, value, 0)
        enter(scores, tags, state, value, alpha, after)
        scale_of = 1.0
    state[0] += math.log(scale_of)
    return True


@subroutine
def fit_doubles(scores, base, tags):
    """Whether float64 has room for the weights of transitions that float32 may have none for.

    They may differ by some hundreds. Masks, which are far below all others, are nothing there.
    """
    top, low = -np.inf, np.inf
    for p in range(base, base + tags * tags):
        top = max(top, scores[p])
    for p in range(base, base + tags * tags):
        low = min(low, scores[p]) if scores[p] > top - 2000.0 else low
    return lanes_in(scores) == 16 and top - low < 1000.0


@subroutine
def weigh_again(scores, base, tags, values, sums, row, out):
    """Write the weights of a step that needed care."""
    lanes, least, nothing, zero = lanes_in(scores), splat(scores, -np.inf), splat_wide(-np.inf, scores), splat_wide(0.0, scores)
    for k in range(0, tags, lanes):
        width, whole = min(lanes, tags - k), load_wide(sums, row + k, scores)
        finite = where_larger(whole, nothing, whole, zero)
        for a in range(tags):
            x = splat_wide(values[row + a], scores) + widen(load_first(scores, base + a * tags + k, width, least))
            store_first(out, a * tags + k, width, exp(narrow(x - finite, scores)))


@subroutine
def add(source, out, at, count):
    """Add numbers to those at `at`."""
    lanes, zero = lanes_in(out), splat(out, 0.0)
    for p in range(0, count, lanes):
        width = min(lanes, count - p)
        store_first(out, at + p, width, load_first(out, at + p, width, zero) + load_first(source, p, width, zero))


@subroutine
def put(source, row, tags, factor, out, at):
    """Write numbers of tags times a factor."""
    for k in range(0, tags, lanes_in(out)):
        store_first(out, at + k, min(lanes_in(out), tags - k), load(source, row + k) * splat(out, factor))


@subroutine
def add_pairs(length, tags, room, alpha, rates, weights, sign, out, at):
    """Add the sums over positions of alpha(a) w(a, b) rate(b), times the sign: four rows and two vectors at a time."""
    lanes, zero = lanes_in(out), splat(out, 0.0)
    for k in range(0, tags, 2 * lanes):
        for a in range(0, tags, 4):
            p = q = r = s = t = u = v = w = zero
            for row in range(room, length * room, room):
                x, y, place = load(rates, row + k), load(rates, row + k + lanes), row + a
                c, d = splat_like(alpha, place, zero), splat_like(alpha, place + 1, zero)
                e, f = splat_like(alpha, place + 2, zero), splat_like(alpha, place + 3, zero)
                p, q, r, s = fma(c, x, p), fma(c, y, q), fma(d, x, r), fma(d, y, s)
                t, u, v, w = fma(e, x, t), fma(e, y, u), fma(f, x, v), fma(f, y, w)
            for j, first, second in ((0, p, q), (1, r, s), (2, t, u), (3, v, w)):
                if a + j < tags:
                    here, width = (a + j) * tags + k, tags - k
                    _add_product(first, weights, sign, out, here, at + here, min(lanes, width))
                    _add_product(second, weights, sign, out, here + lanes, at + here + lanes, max(min(lanes, width - lanes), 0))


@subroutine
def _add_product(x, weights, sign, out, here, there, width):
    """Add a vector times weights and a sign, of which `width` numbers exist."""
    zero = splat(out, 0.0)
    old = load_first(out, there, width, zero)
    store_first(out, there, width, fma(x * splat(out, sign), load_first(weights, here, width, zero), old))


@subroutine
def _rows_of(scores, n, length, tags, begin, z, out):
    """Add z to what a sequence has: emissions, start, end and transitions; returns the sum of s z."""
    ends, base = begin + n * tags, begin + (n + 2) * tags
    found = add_structure(scores, z, out, begin, begin + length * tags)
    if length > 0:
        found += add_structure(scores, z, out, ends, base)
    if length > 1:
        found += add_structure(scores, z, out, base, base + tags * tags)
    return found


@kernel
def sums(worker, workers, tags, scores, lengths, mode, z, seeds, out, log_z, log_p, codes):
    """As `sums` of chains, of `[B, n + 2 + tags, tags]`: emissions, start, end and transitions.

    What float64 is to compute, as it takes less time than the logarithms of float32, has a log-partition of NaN.
    """
    cells, lanes, rows = tags * tags, lanes_in(scores), scores.shape[1]
    n, room, wide = rows - 2 - tags, -(-tags // lanes) * lanes, np.empty(0)
    flat, flat_z, flat_out = scores.reshape(-1), z.reshape(-1), out.reshape(-1)
    keep, sign = mode != Mode.LOG_PARTITION, -1.0 if mode == Mode.LOG_PROB else 1.0
    value, state, most = aligned(2 * room, wide), np.empty(3), aligned(room, wide)
    values, logs, careful = aligned((n + 1) * room, wide), aligned((n + 1) * room, wide), np.zeros(n + 1, np.bool_)
    alpha, total = aligned((n + 2) * room + 4 * lanes, scores), aligned((n + 2) * room + 4 * lanes, scores)
    weights, turned = aligned(cells + 4 * lanes, scores), aligned(cells + 4 * lanes, scores)
    scratch, above, rate = aligned(cells + 4 * lanes, scores), aligned(room, scores), aligned(room, scores)
    chosen = np.empty(n if mode == Mode.SAMPLE else 0, np.int64)
    alpha[:], total[:], total[:room], above[:], rate[:] = 0.0, 0.0, 1.0, 0.0, 0.0
    known, roomy = -1, False
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * rows * tags
        base, stop = begin + (n + 2) * tags, begin + rows * tags
        codes[b] = lengths[b] != length
        if length > 1 and not (known >= 0 and are_equal(flat, base, known, cells)):
            known = -1 if worst_of(flat, base, stop) == np.inf else base
            if known >= 0:
                weigh(flat, base, tags, most, weights, turned)
                roomy = fit_doubles(flat, base, tags)
        codes[b] |= length > 0 and (are_bad(flat, begin, n, length, tags) or (length > 1 and known < 0))
        last, before = length * room, (length - 1) * room
        if length > 0 and not codes[b]:
            log_z[b] = np.nan
            patience = length // 8 if roomy else length  # a step that needs care takes eight times as long
            if forward(
                flat, begin, n, length, tags, room, most, weights, state, value, alpha, total, careful, values, logs, patience
            ):  # fmt: skip
                log_z[b] = state[0] + last_tags(tags, alpha, last, total, before, rate)
            codes[b] |= not log_z[b] > -np.inf
        if keep:
            clear(flat_out, begin, stop)
        if not keep or codes[b] or length == 0:
            continue
        if mode == Mode.SAMPLE:
            _draw(flat, begin, n, length, tags, room, alpha, weights, careful, values, logs, seeds[b], above, chosen, flat_out)
            continue
        for k in range(0, tags, lanes):  # the last tags
            store(above, k, load(rate, k) * load(total, before + k))
        put(above, 0, tags, sign, flat_out, begin + before // room * tags)
        put(above, 0, tags, sign, flat_out, begin + (n + 1) * tags)
        for i in range(length - 1, 0, -1):
            row = i * room
            if careful[i]:
                weigh_again(flat, base, tags, values, logs, row, scratch)
                back_rows(tags, alpha, row, above, rate, scratch, 0, splat_half(out, sign))
                add(scratch, flat_out, base, cells)
                total[row : row + room] = 0.0
            else:
                multiply(tags, rate, 0, turned, 0, above, 0, 0.0, None, 0)
                for k in range(0, tags, lanes):
                    store(total, row + k, load(rate, k))
            rates_before(tags, alpha, total, row, room, above, rate, splat_half(out, sign))
            put(above, 0, tags, sign, flat_out, begin + (i - 1) * tags)
        put(above, 0, tags, sign, flat_out, begin + n * tags)
        if length > 1:  # else there may be no weights yet
            add_pairs(length, tags, room, alpha, total, weights, sign, flat_out, base)
        if mode == Mode.LOG_PROB:
            log_p[b] = _rows_of(flat, n, length, tags, begin, flat_z, flat_out) - log_z[b]


@subroutine
def _draw(scores, begin, n, length, tags, room, alpha, weights, careful, values, logs, seed, column, chosen, out):
    """Draw the tags from the last to the first, by p(a given b) = alpha(a) w(a, b) / total(b)."""
    base, drawn = begin + (n + 2) * tags, 0
    for i in range(length, 0, -1):  # the tag of position i - 1
        u, drawn = uniform(seed, drawn)
        if i == length:
            tag = pick(tags, alpha, i * room, weights, -1, 0, u)
        elif careful[i]:
            for a in range(tags):
                x = values[i * room + a] + np.float64(scores[base + a * tags + chosen[i]])
                column[a] = math.exp(x - logs[i * room + chosen[i]])
            tag = pick(tags, alpha, i * room, column, 0, 1, u)
        else:
            tag = pick(tags, alpha, i * room, weights, chosen[i], tags, u)
        chosen[i - 1] = tag
        out[begin + (i - 1) * tags + tag] = 1.0
