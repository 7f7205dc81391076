"""The downward pass of a chain's sums on the CPU: probabilities of all parts, from the last position to the first."""

from __future__ import annotations

from pullback.inference.compile import lean
from pullback.inference.hypergraph.vectors import select_positive, splat_wide, widen
from pullback.inference.lanes import BYTES, load, splat, store
from pullback.inference.rows import add_sums, any_nonzero, load_first, prefetch, store_first, sum_of

AHEAD = 1200  # how many numbers ahead memory is asked for


@lean
def back(tags, alpha, total, row, reached, rate, held, at, out, place, sign):
    """Write the probabilities of a position's parts times `sign`; `reached` becomes that of the tags before.

    What vectors write beyond their row is written again later: columns go from the last to the first, rows from the first on.
    """
    lanes, zero = BYTES // held.itemsize, splat(held, 0.0)
    for k in range(0, tags, lanes):
        sums = load(total, row + k)
        store(rate, k, select_positive(sums, load(reached, k) / sums, zero))
        store(reached, k, zero)
    for k in range((tags - 1) // (2 * lanes) * 2 * lanes, -1, -2 * lanes):
        near, far = load(rate, k), load(rate, k + lanes)
        for a in range(0, tags, 4):
            first = _back_row(a, tags, k, alpha, row, near, far, held, at, out, place, sign)
            second = _back_row(a + 1, tags, k, alpha, row, near, far, held, at, out, place, sign)
            third = _back_row(a + 2, tags, k, alpha, row, near, far, held, at, out, place, sign)
            fourth = _back_row(a + 3, tags, k, alpha, row, near, far, held, at, out, place, sign)
            add_sums(reached, a, first, second, third, fourth)
    for k in range(0, tags, lanes):
        store(reached, k, load(reached, k) * load(alpha, row + k))


@lean
def _back_row(a, tags, k, alpha, row, near, far, held, at, out, place, sign):
    """Write two vectors of a row, at the rates `near` and `far`; returns one whose lanes add up to their sum over alpha."""
    lanes = BYTES // held.itemsize
    p = splat(held, 0.0)
    if a < tags:
        factor, here, there = splat(held, sign * alpha[row + a]), at + a * tags + k, place + a * tags + k
        p = load(held, here) * near
        if (a + 1) * tags + 2 * lanes <= tags * tags:
            store(out, there, p * factor)
        else:
            store_first(out, there, tags - k, p * factor)
        if k + lanes < tags:
            q = load(held, here + lanes) * far
            if (a + 1) * tags + 2 * lanes <= tags * tags:
                store(out, there + lanes, q * factor)
            else:
                store_first(out, there + lanes, tags - k - lanes, q * factor)
            p = p + q
    return p


@lean
def add_structure(scores, z, out, start, stop):
    """Add z to `out`; returns the sum of s z over the parts that z has, in float64. Most vectors of z are zero."""
    lanes, none, total = BYTES // scores.itemsize, splat(scores, 0.0), splat_wide(0.0, scores)
    for p in range(start, stop, lanes):
        prefetch(z, p + AHEAD)
        width = min(lanes, stop - p)
        x = load(z, p) if width == lanes else load_first(z, p, width, none)
        if any_nonzero(x):
            store_first(out, p, width, load_first(out, p, width, none) + x)
            s = load_first(scores, p, width, none)
            s = select_positive(x, s, select_positive(none - x, s, none))  # what z leaves out may be infinite
            total = total + widen(x) * widen(s)
    return sum_of(total)
