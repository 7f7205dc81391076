"""Entropies of tag sequences, and derivatives of marginals, on the CPU: one example at a time, tags in SIMD lanes.

With p(a given b) = alpha(a) w(a, b) / total(b) of `kernels.py`, the rate of tag b at position i is the mean over a of

    x(a, b) = rate(i - 1, a) + direction(i, a, b),      or, for entropies, rate(i - 1, a) - log p(a given b).

On the way back, with q(b) the probability of a tag and dq(b) its derivative, those of a part are p q and p (dq + q (x - rate)).
Rates and derivatives are float64. Probabilities are divided by their own sum, which in float32 is not quite 1.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, load, splat, store
from pullback.inference._numba.packing import clear
from pullback.inference._numba.rows import load_first, store_first, sum_of
from pullback.inference._numba.vectors import load_wide, log, narrow, select_positive, splat_wide, widen
from pullback.inference.chain.kernels import forward

SLOPE, ENTROPY, ENTROPY_SLOPE = range(3)
"""The results that `slopes` writes."""


@subroutine
def _load(array, at, width):
    """A vector of which `width` numbers exist; the others are zero."""
    if width >= lanes_in(array):
        return load(array, at)
    return load_first(array, at, width, splat(array, 0.0))


@subroutine
def _term(p, before, direction, at, width, surprise):
    """The summand of a transition in the rate of its tag, 0 without probability; of surprises, without log of the sum of p."""
    zero = splat_wide(0.0, direction)
    x = splat_wide(before, direction)
    if surprise:
        x = x - widen(log(select_positive(p, p, splat(direction, 1.0))))
    else:
        x = x + widen(_load(direction, at, width))
    return select_positive(widen(p), x, zero)


@subroutine
def rates_of(tags, weights, at, direction, there, surprise, alpha, row, before, rate, whole):
    """Rates of a position's tags, from those of the position before, and the sums of p.

    Its weights are at `at`, its directions at `there`.
    """
    lanes, zero, one = lanes_in(weights), splat_wide(0.0, weights), splat_wide(1.0, weights)
    for k in range(0, tags, lanes):
        mean, total = zero, zero
        for a in range(tags):
            here = a * tags + k
            p = _load(weights, at + here, tags - k) * splat(weights, alpha[row + a])
            mean = mean + widen(p) * _term(p, before[a], direction, there + here, tags - k, surprise)
            total = total + widen(p)
        some = select_positive(total, total, one)
        mean = mean / some
        if surprise:
            mean = mean + log(some)
        store(rate, k, mean)
        store(whole, k, total)


@subroutine
def back(tags, weights, at, direction, there, surprise, alpha, row, before, rate, whole, q, slope, next_q, next_slope):
    """Write the derivatives of a position's parts over their weights; q and `slope` become those of the tags before."""
    lanes, zero, one = lanes_in(weights), splat_wide(0.0, weights), splat_wide(1.0, weights)
    for a in range(tags):
        up, up_slope = zero, zero
        for k in range(0, tags, lanes):
            here, width = a * tags + k, tags - k
            total, reached = load_wide(whole, k, weights), load_wide(q, k, weights)
            some = select_positive(total, total, one)
            p = _load(weights, at + here, width) * splat(weights, alpha[row + a])
            x = _term(p, before[a], direction, there + here, width, surprise) - load_wide(rate, k, weights)
            if surprise:
                x = x + log(some)
            share = widen(p) / some
            # what no sequence reaches has no derivative, though rates there may be infinite
            found = select_positive(share * reached, share * (load_wide(slope, k, weights) + reached * x), zero)
            up, up_slope = up + share * reached, up_slope + found
            if width >= lanes:
                store(weights, at + here, narrow(found, weights))
            else:
                store_first(weights, at + here, width, narrow(found, weights))
        next_q[a], next_slope[a] = sum_of(up), sum_of(up_slope)
    for a in range(tags):
        q[a], slope[a] = next_q[a], next_slope[a]


@subroutine
def end(tags, alpha, row, rate, surprise, q, slope):
    """The probabilities of the last tags and their derivatives; returns the rate of all."""
    whole, mean = 0.0, 0.0
    for b in range(tags):
        whole += alpha[row + b]
    for b in range(len(q)):
        q[b], slope[b] = 0.0, 0.0
    for b in range(tags):
        if alpha[row + b] > 0.0:
            q[b] = alpha[row + b] / whole
            slope[b] = rate[b] - math.log(q[b]) if surprise else rate[b]
            mean += q[b] * slope[b]
    for b in range(tags):
        slope[b] = q[b] * (slope[b] - mean)
    return mean


@kernel
def slopes(worker, workers, tags, scores, lengths, what, direction, out, value, codes):
    """Write entropies, or rates of log-partitions, and derivatives of marginals; `codes` as of `kernels.sums`."""
    cells, lanes, surprise = tags * tags, lanes_in(scores), what != SLOPE
    n, room, wide = scores.shape[1], -(-tags // lanes) * lanes, np.empty(0)
    flat, along, weights = scores.reshape(-1), direction.reshape(-1), out.reshape(-1)
    alpha, total = aligned((n + 1) * room, scores), aligned((n + 1) * room, scores)
    values, rates, wholes = aligned(2 * room, wide), aligned(n * room, wide), aligned(n * room, wide)
    q, slope, state = aligned(room, wide), aligned(room, wide), np.empty(3)
    next_q, next_slope = aligned(room, wide), aligned(room, wide)
    total[:room] = 1.0
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * n * cells
        codes[b], value[b] = lengths[b] != length, 0.0
        if length == 0:
            clear(weights, begin, begin + n * cells)
            continue
        last, worst = forward(flat, begin, length, tags, True, state, values, alpha, total, along, weights)
        feasible = False
        for tag in range(tags):
            rates[tag] = 0.0 if surprise else along[begin + tag]
            feasible |= alpha[last + tag] > 0.0
        codes[b] |= worst == np.inf or not feasible
        if codes[b]:
            value[b] = -np.inf if worst < np.inf else 0.0
            continue
        for i in range(1, length):
            before, rate, whole = rates[(i - 1) * room : i * room], rates[i * room :], wholes[i * room :]
            at = begin + i * cells
            rates_of(tags, weights, at, along, at, surprise, alpha, i * room, before, rate, whole)
        value[b] = end(tags, alpha, last, rates[(length - 1) * room :], surprise, q, slope)
        if what == ENTROPY:
            continue
        for i in range(length - 1, 0, -1):
            before, rate, whole = rates[(i - 1) * room : i * room], rates[i * room :], wholes[i * room :]
            at = begin + i * cells
            back(
                tags, weights, at, along, at, surprise, alpha, i * room, before, rate, whole,
                q, slope, next_q, next_slope,
            )  # fmt: skip
        clear(weights, begin, begin + cells)
        for tag in range(tags):
            weights[begin + tag] = slope[tag]
        clear(weights, begin + length * cells, begin + n * cells)
