"""Entropies of subsets, and derivatives of marginals, on the CPU: from the coins of `sums.py`, an example per lane.

If j of the items up to item i are taken, it is one of them with a chance of w = p_i F_i(j - 1) / F_(i + 1)(j), so that

    tangent(i + 1, j) = w (tangent(i, j - 1) + direction(i)) + (1 - w) tangent(i, j),

or, for entropies, with -log w and -log(1 - w) added to the two ways instead of the direction. The way back is that of
marginals, for dual numbers: along the tangents, chances change by w (tangent of the way - their mean).
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, load, splat, store
from pullback.inference._numba.vectors import log, select_positive
from pullback.inference.front.modes import Mode
from pullback.inference.subset.sums import LANES, coins_for, toss, write


@subroutine
def _ways(w, at, j, direction, i, surprise, tangents):
    """The chance 1 - w of the other way, and the tangents of both."""
    one = splat(tangents, 1.0)
    own, other, rest = load(tangents, at - LANES) if j > 0 else one - one, load(tangents, at), one - w
    if surprise:
        return rest, own - log(select_positive(w, w, one)), other - log(select_positive(rest, rest, one))
    return rest, own + load(direction, i * LANES), other


@subroutine
def _upward(coins, n, most, direction, surprise, tangents):
    """Write tangents, and w over F."""
    row, zero, one = (most + 1) * LANES, splat(tangents, 0.0), splat(tangents, 1.0)
    tangents[:row] = 0.0
    for i in range(n):
        p = load(coins.heads, i * LANES)
        for j in range(most, -1, -1):
            at = i * row + j * LANES
            whole = load(coins.chances, at + row)
            w = load(coins.chances, at - LANES) * p / select_positive(whole, whole, one) if j > 0 else zero
            rest, own, other = _ways(w, at, j, direction, i, surprise, tangents)
            store(tangents, at + row, w * own + rest * other)
            store(coins.chances, at, w)


@subroutine
def _downward(coins, n, most, direction, surprise, tangents, reached, reached_tangents, found):
    """Write the derivatives of the marginals; `reached` is the probability that j of the items so far are taken."""
    reached[: (most + 1) * LANES] = 0.0
    reached_tangents[: (most + 1) * LANES] = 0.0
    for lane in range(LANES):
        reached[coins.ks[lane] * LANES + lane] = 1.0
    for i in range(n - 1, -1, -1):
        total = splat(found, 0.0)
        for j in range(most + 1):
            here, at = j * LANES, (i * (most + 1) + j) * LANES
            w, mean = load(coins.chances, at), load(tangents, at + (most + 1) * LANES)
            rest, own, other = _ways(w, at, j, direction, i, surprise, tangents)
            q, q_tangent = load(reached, here), load(reached_tangents, here)
            change = w * (q_tangent + q * (own - mean))
            total = total + change
            store(reached, here, q * rest)
            store(reached_tangents, here, rest * (q_tangent + q * (other - mean)))
            if j > 0:
                store(reached, here - LANES, load(reached, here - LANES) + q * w)
                store(reached_tangents, here - LANES, load(reached_tangents, here - LANES) + change)
        store(found, i * LANES, total)


@kernel
def tangents(worker, workers, scores, lengths, ks, order, mode, direction, out, value, status):
    """Write entropies, or tangents of log-partitions, to `value` and, by `mode`, derivatives of marginals over zeros."""
    coins, surprise, wide = coins_for(scores, lengths, ks), mode != Mode.TANGENT, np.empty(0)
    n = scores.shape[1]
    cells, along, found = aligned(len(coins.chances), wide), aligned(n * LANES, wide), aligned(n * LANES, wide)
    reached, reached_tangents = aligned((n + 1) * LANES, wide), aligned((n + 1) * LANES, wide)
    along[:] = 0.0
    for first in range(worker * LANES, len(order), workers * LANES):
        longest, most = toss(scores, lengths, ks, order, first, coins, status)
        for lane in range(LANES * (not surprise)):
            b = order[min(first + lane, len(order) - 1)]
            for i in range(longest):  # what cannot be taken may have a direction that is no number
                along[i * LANES + lane] = direction[b, i] if coins.scores[i * LANES + lane] > -np.inf else 0.0
        _upward(coins, longest, most, along, surprise, cells)
        for lane in range(min(LANES, len(order) - first)):
            value[order[first + lane]] = cells[(longest * (most + 1) + coins.ks[lane]) * LANES + lane]
        if mode != Mode.ENTROPY:
            _downward(coins, longest, most, along, surprise, cells, reached, reached_tangents, found)
            write(found, order, first, lengths, out, status)
