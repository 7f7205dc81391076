"""The way back of a chain's sums on the CPU, from the last position to the first: probabilities of all parts, or a sample."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.lanes import lanes_in, load, splat, store
from pullback.inference._numba.packing import clear
from pullback.inference._numba.random_kernels import uniform
from pullback.inference._numba.rows import (
    any_nonzero,
    either,
    first_half,
    keep_first,
    lanes_of,
    load_first,
    load_like,
    splat_like,
    store_first,
    store_sums,
    sum_of,
    with_zeros,
)
from pullback.inference._numba.vectors import select_positive, splat_wide, widen


@subroutine
def back(tags, alpha, total, row, room, sums, rate, out, at, sign):
    """Turn the weights w(a, b) of a position into the probabilities p(a, b) = alpha(a) w(a, b) rate(b), times `sign`.

    The rate of a tag is its probability over `total`. Those of the tags before are written over them.
    `sign` is a vector, as wide as all others here.
    """
    back_rows(tags, alpha, row, sums, rate, out, at, sign)
    rates_before(tags, alpha, total, row, room, sums, rate, sign)


@subroutine
def back_rows(tags, alpha, row, sums, rate, out, at, sign):
    """The same without the rates of the tags before; writes sum_b w(a, b) rate(b) to `sums`."""
    for a in range(0, tags - 3, 4):
        first = _back_row(tags, alpha, row + a, rate, out, at + a * tags, sign)
        second = _back_row(tags, alpha, row + a + 1, rate, out, at + (a + 1) * tags, sign)
        third = _back_row(tags, alpha, row + a + 2, rate, out, at + (a + 2) * tags, sign)
        fourth = _back_row(tags, alpha, row + a + 3, rate, out, at + (a + 3) * tags, sign)
        store_sums(sums, a, first, second, third, fourth)
    for a in range(tags - tags % 4, tags):
        sums[a] = sum_of(_back_row(tags, alpha, row + a, rate, out, at + a * tags, sign))


@subroutine
def rates_before(tags, alpha, total, row, room, sums, rate, like):
    """Turn `sums` into the probabilities of the tags before, alpha(a) sum_b w(a, b) rate(b), and write their rates."""
    for k in range(0, tags, lanes_of(like)):
        before = load_like(total, row - room + k, like)
        reached = load_like(sums, k, like) * load_like(alpha, row + k, like)
        store(sums, k, reached)
        store(rate, k, select_positive(before, reached / before, like - like))


@subroutine
def _back_row(tags, alpha, place, rate, out, at, sign):
    """Multiply a row by the rates and its alpha; returns a vector whose lanes add up to the row's sum without alpha.

    The last vector of a row, or half of one if that is enough, overlaps the one before: it is read before that is written, and
    only its new lanes are counted.
    """
    lanes, half, factor = lanes_of(sign), lanes_of(sign) // 2, splat_like(alpha, place, sign) * sign
    rest, sums, zero, none = tags % lanes, sign - sign, sign - sign, first_half(sign - sign)
    if tags < lanes:
        sums = load_first(out, at, tags, zero) * load_like(rate, 0, sign)
        store_first(out, at, tags, sums * factor)
        return sums
    whole = load_like(out, at + tags - lanes, sign) if rest > half else zero
    short = load_like(out, at + tags - half, none) if 0 < rest <= half else none
    for k in range(0, tags - rest, lanes):
        p = load_like(out, at + k, sign) * load_like(rate, k, sign)
        store(out, at + k, p * factor)
        sums = sums + p
    if rest > half:
        p = whole * load_like(rate, tags - lanes, sign)
        store(out, at + tags - lanes, p * factor)
        sums = sums + keep_first(zero, lanes - rest, p)
    elif rest > 0:
        q = short * load_like(rate, tags - half, none)
        store(out, at + tags - half, q * first_half(factor))
        sums = sums + with_zeros(keep_first(none, half - rest, q))
    return sums


@subroutine
def draw(tags, length, alpha, last, room, out, begin, stop, seed, chosen):
    """Draw the tags from the last to the first, by p(a given b) = alpha(a) w(a, b) / total(b); parts replace the weights."""
    row, at, stride, drawn = last, -1, 0, 0
    for i in range(length - 1, -1, -1):
        u, drawn = uniform(seed, drawn)
        chosen[i] = pick(tags, alpha, row, out, at, stride, u)
        row, at, stride = i * room, begin + i * tags * tags + chosen[i], tags
    clear(out, begin, stop)
    for i in range(length):
        out[begin + (i * tags + (chosen[i - 1] if i > 0 else 0)) * tags + chosen[i]] = 1.0


@subroutine
def pick(tags, alpha, row, weights, at, stride, u):
    """The tag a that u, from 0 to 1, chooses by alpha(a) w(a), with w(a) at `at + a stride`; of alpha alone if `at` is -1."""
    whole, found = 0.0, 0
    for a in range(tags):
        whole += np.float64(alpha[row + a]) * (np.float64(weights[at + a * stride]) if at >= 0 else 1.0)
    u *= whole
    for a in range(tags):
        w = np.float64(alpha[row + a]) * (np.float64(weights[at + a * stride]) if at >= 0 else 1.0)
        if w > 0.0:
            found = a
            u -= w
            if u < 0.0:
                break
    return found


@subroutine
def add_structure(scores, z, out, start, stop):
    """Add z to `out`; returns the sum of s z over the parts that z has, in float64. Most vectors of z are zero."""
    lanes, total = lanes_in(scores), splat_wide(0.0, scores)
    whole = stop - (stop - start) % (4 * lanes)
    for p in range(start, whole, 4 * lanes):
        x = either(load(z, p), load(z, p + lanes))
        if any_nonzero(either(x, either(load(z, p + 2 * lanes), load(z, p + 3 * lanes)))):
            for q in range(p, p + 4 * lanes, lanes):
                x = load(z, q)
                store(out, q, load(out, q) + x)
                total = total + _products(x, load(scores, q))
    for p in range(whole, stop, lanes):
        width, none = min(lanes, stop - p), splat(scores, 0.0)
        x = load_first(z, p, width, none)
        store_first(out, p, width, load_first(out, p, width, none) + x)
        total = total + _products(x, load_first(scores, p, width, none))
    return sum_of(total)


@subroutine
def _products(x, s):
    """The products x s in float64, 0 where x is 0: what a structure leaves out may be infinite or NaN."""
    none = x - x
    return widen(x) * widen(select_positive(x, s, select_positive(none - x, s, none)))
