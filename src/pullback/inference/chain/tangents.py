"""Entropies of tag sequences, and derivatives of marginals, on the CPU: one example at a time, tags in SIMD lanes.

With p(a given b) = alpha(a) w(a, b) / total(b) of `kernels.py`, the tangent of tag b at position i is the mean over a of

    x(a, b) = tangent(i - 1, a) + direction(i, a, b),      or, for entropies, tangent(i - 1, a) - log p(a given b).

On the way back, with q(b) the probability of a tag and dq(b) its derivative, those of a part are p q and
p (dq + q (x - tangent)).
Tangents and derivatives are float64. Probabilities are divided by their own sum, which in float32 is not quite 1.
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
from pullback.inference.front.modes import Mode


@subroutine
def _load(array, at, width):
    """A vector of which `width` numbers exist; the others are zero."""
    if width >= lanes_in(array):
        return load(array, at)
    return load_first(array, at, width, splat(array, 0.0))


@subroutine
def _term(p, before, direction, at, width, surprise):
    """The summand of a transition in the tangent of its tag, 0 without probability; of surprises, without log(sum of p)."""
    zero = splat_wide(0.0, direction)
    x = splat_wide(before, direction)
    if surprise:
        x = x - widen(log(select_positive(p, p, splat(direction, 1.0))))
    else:
        x = x + widen(_load(direction, at, width))
    return select_positive(widen(p), x, zero)


@subroutine
def tangents_of(tags, weights, at, direction, there, surprise, alpha, row, before, tangent, whole):
    """Tangents of a position's tags, from those of the position before, and the sums of p.

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
        store(tangent, k, mean)
        store(whole, k, total)


@subroutine
def back(
    tags, weights, at, direction, there, surprise, alpha, row, before, tangent, whole, q, q_tangent, next_q, next_q_tangent
):
    """Write the derivatives of a position's parts over their weights; q and `q_tangent` become those of the tags before."""
    lanes, zero, one = lanes_in(weights), splat_wide(0.0, weights), splat_wide(1.0, weights)
    for a in range(tags):
        up, up_tangent = zero, zero
        for k in range(0, tags, lanes):
            here, width = a * tags + k, tags - k
            total, reached = load_wide(whole, k, weights), load_wide(q, k, weights)
            some = select_positive(total, total, one)
            p = _load(weights, at + here, width) * splat(weights, alpha[row + a])
            x = _term(p, before[a], direction, there + here, width, surprise) - load_wide(tangent, k, weights)
            if surprise:
                x = x + log(some)
            share = widen(p) / some
            # what no sequence reaches has no derivative, though tangents there may be infinite
            found = select_positive(share * reached, share * (load_wide(q_tangent, k, weights) + reached * x), zero)
            up, up_tangent = up + share * reached, up_tangent + found
            if width >= lanes:
                store(weights, at + here, narrow(found, weights))
            else:
                store_first(weights, at + here, width, narrow(found, weights))
        next_q[a], next_q_tangent[a] = sum_of(up), sum_of(up_tangent)
    for a in range(tags):
        q[a], q_tangent[a] = next_q[a], next_q_tangent[a]


@subroutine
def end(tags, alpha, row, tangent, surprise, q, q_tangent):
    """The probabilities of the last tags and their derivatives; returns the tangent of all."""
    whole, mean = 0.0, 0.0
    for b in range(tags):
        whole += alpha[row + b]
    for b in range(len(q)):
        q[b], q_tangent[b] = 0.0, 0.0
    for b in range(tags):
        if alpha[row + b] > 0.0:
            q[b] = alpha[row + b] / whole
            q_tangent[b] = tangent[b] - math.log(q[b]) if surprise else tangent[b]
            mean += q[b] * q_tangent[b]
    for b in range(tags):
        q_tangent[b] = q[b] * (q_tangent[b] - mean)
    return mean


@kernel
def tangents(worker, workers, tags, scores, lengths, mode, direction, out, value, codes):
    """Write entropies, or tangents of log-partitions, and derivatives of marginals; `codes` as of `kernels.sums`."""
    cells, lanes, surprise = tags * tags, lanes_in(scores), mode != Mode.TANGENT
    n, room, wide = scores.shape[1], -(-tags // lanes) * lanes, np.empty(0)
    flat, flat_direction, weights = scores.reshape(-1), direction.reshape(-1), out.reshape(-1)
    alpha, total = aligned((n + 1) * room, scores), aligned((n + 1) * room, scores)
    values, tag_tangents, wholes = aligned(2 * room, wide), aligned(n * room, wide), aligned(n * room, wide)
    q, q_tangent, state = aligned(room, wide), aligned(room, wide), np.empty(3)
    next_q, next_q_tangent = aligned(room, wide), aligned(room, wide)
    total[:room] = 1.0
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * n * cells
        codes[b], value[b] = lengths[b] != length, 0.0
        if length == 0:
            clear(weights, begin, begin + n * cells)
            continue
        last, worst = forward(flat, begin, length, tags, True, state, values, alpha, total, flat_direction, weights)
        feasible = False
        for tag in range(tags):
            tag_tangents[tag] = 0.0 if surprise else flat_direction[begin + tag]
            feasible |= alpha[last + tag] > 0.0
        codes[b] |= worst == np.inf or not feasible
        if codes[b]:
            value[b] = -np.inf if worst < np.inf else 0.0
            continue
        for i in range(1, length):
            before, tangent, whole = tag_tangents[(i - 1) * room : i * room], tag_tangents[i * room :], wholes[i * room :]
            at = begin + i * cells
            tangents_of(tags, weights, at, flat_direction, at, surprise, alpha, i * room, before, tangent, whole)
        value[b] = end(tags, alpha, last, tag_tangents[(length - 1) * room :], surprise, q, q_tangent)
        if mode == Mode.ENTROPY:
            continue
        for i in range(length - 1, 0, -1):
            before, tangent, whole = tag_tangents[(i - 1) * room : i * room], tag_tangents[i * room :], wholes[i * room :]
            at = begin + i * cells
            back(
                tags, weights, at, flat_direction, at, surprise, alpha, i * room, before, tangent, whole,
                q, q_tangent, next_q, next_q_tangent,
            )  # fmt: skip
        clear(weights, begin, begin + cells)
        for tag in range(tags):
            weights[begin + tag] = q_tangent[tag]
        clear(weights, begin + length * cells, begin + n * cells)
