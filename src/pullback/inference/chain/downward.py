"""The downward pass of a chain's sums on the CPU: probabilities of all parts, from the last position to the first."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import lean
from pullback.inference.hypergraph.vectors import select_positive
from pullback.inference.lanes import BYTES, load, splat, store
from pullback.inference.rows import add_sums, any_nonzero, prefetch, prefetch_to_write, store_first

AHEAD = 1200  # how many numbers ahead memory is asked for


@lean
def back(tags, alpha, total, row, reached, rate, held, at, out, place, sign):
    """Write the probabilities of a position's parts times `sign`; `reached` becomes that of the tags before.

    What vectors write beyond their row is written again later: columns go from the last to the first, rows from the first on.
    """
    lanes, zero = BYTES // held.itemsize, splat(held, 0.0)
    for p in range(0, tags * tags, lanes):
        prefetch_to_write(out, place - 2 * tags * tags + p)
    for k in range(0, tags, lanes):
        sums = load(total, row + k)
        store(rate, k, select_positive(sums, load(reached, k) / sums, zero))
        store(reached, k, zero)
    for k in range((tags - 1) // (2 * lanes) * 2 * lanes, -1, -2 * lanes):
        for a in range(0, tags, 4):
            first = _back_row(a, tags, k, alpha, row, rate, held, at, out, place, sign)
            second = _back_row(a + 1, tags, k, alpha, row, rate, held, at, out, place, sign)
            third = _back_row(a + 2, tags, k, alpha, row, rate, held, at, out, place, sign)
            fourth = _back_row(a + 3, tags, k, alpha, row, rate, held, at, out, place, sign)
            add_sums(reached, a, first, second, third, fourth)
    for k in range(0, tags, lanes):
        store(reached, k, load(reached, k) * load(alpha, row + k))


@lean
def _back_row(a, tags, k, alpha, row, rate, held, at, out, place, sign):
    """Write two vectors of a row; returns one whose lanes add up to their sum over alpha."""
    lanes = BYTES // held.itemsize
    p = splat(held, 0.0)
    if a < tags:
        factor, here, there = splat(held, sign * alpha[row + a]), at + a * tags + k, place + a * tags + k
        p = load(held, here) * load(rate, k)
        if (a + 1) * tags + 2 * lanes <= tags * tags:
            store(out, there, p * factor)
        else:
            store_first(out, there, tags - k, p * factor)
        if k + lanes < tags:
            q = load(held, here + lanes) * load(rate, k + lanes)
            if (a + 1) * tags + 2 * lanes <= tags * tags:
                store(out, there + lanes, q * factor)
            else:
                store_first(out, there + lanes, tags - k - lanes, q * factor)
            p = p + q
    return p


@lean
def add_structure(scores, z, out, start, stop):
    """Add z to `out`; returns the sum of s z over the parts that z has, in float64. Most vectors of z are zero."""
    lanes, total = BYTES // scores.itemsize, 0.0
    for p in range(start, stop, lanes):
        prefetch(z, p + AHEAD)
        if p + lanes > stop or any_nonzero(load(z, p)):
            for q in range(p, min(p + lanes, stop)):
                if z[q] != 0:
                    total += np.float64(scores[q]) * np.float64(z[q])
                    out[q] += z[q]
    return total


@lean
def zero(out, start, stop):
    for p in range(start, stop):
        out[p] = 0.0
