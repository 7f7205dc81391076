"""Entropies of CTC's paths, and derivatives of marginals, on the CPU: from the chances that `kernels.climb` has kept.

A second sweep finds the tangents of the states: with p the chances of the three ways into a state,

    tangent(t, s) = direction(t, symbol of s) + sum over ways of p tangent(t - 1, s - way),

or, for entropies, with -log p added to the tangent of each way instead of the direction. Along it, chances change by
p (tangent of the way - their mean). The way back is that of marginals, for dual numbers. All of it is in float64.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, load, store
from pullback.inference._numba.vectors import load_wide, select_positive, splat_wide, widen
from pullback.inference._numba.ways import tangent_of
from pullback.inference.ctc.kernels import climb, emit, rounded, ways
from pullback.inference.front.modes import Mode


@subroutine
def _goal_tangent(direction, begin, frames, stride, states, work, zeros, surprise, chances, chance_tangents, keep):
    """The tangent of the goal; if `keep`, `chance_tangents` of the chances."""
    symbols, _, numbers, lines = work
    lanes, width = lanes_in(numbers), len(zeros)
    row, zero, one = lanes + width, splat_wide(0.0, numbers), splat_wide(1.0, numbers)
    lines[: 2 * row] = 0.0
    for t in range(frames + 1):
        before, after = t % 2 * row, (t + 1) % 2 * row
        if not surprise:
            emit(direction, begin + t * stride, symbols, states, t == frames, 0.0, numbers)
        for s in range(0, width, lanes):
            at = 3 * width * t + s
            a, b, c = (
                widen(load(chances, at)), widen(load(chances, at + width)), widen(load(chances, at + 2 * width))
            )  # fmt: skip
            stay, once, twice = ways(lines, before, zeros, s, numbers)
            x, y = tangent_of(a, stay, surprise, numbers), tangent_of(b, once, surprise, numbers)
            z = tangent_of(c, twice, surprise, numbers)
            total = a + b + c  # in float32 not quite 1, which tangents would feel that grow with every step of a path
            tangent = (a * x + b * y + c * z) / select_positive(total, total, one)
            if keep:
                store(chance_tangents, at, a * (x - tangent))
                store(chance_tangents, at + width, b * (y - tangent))
                store(chance_tangents, at + 2 * width, c * (z - tangent))
            if not surprise:
                tangent = tangent + widen(load(numbers, s))
            store(lines, after + lanes + s, select_positive(total, tangent, zero))
    return lines[(frames + 1) % 2 * row + lanes + states - 1]


@subroutine
def _passed(q, q_tangent, way, chances, chance_tangents, at, like):
    """The probability that a way passes to the state before it, and its derivative."""
    p, zero = widen(load(chances, at + way)), splat_wide(0.0, like)
    return q * p, select_positive(q, q_tangent * p + q * load_wide(chance_tangents, at + way, like), zero)


@subroutine
def _downward(begin, frames, stride, states, symbols, chances, chance_tangents, mass, mass_tangent, width, out):
    """Add the derivatives of the marginals to zeros; `mass` is the probability of each state, `mass_tangent` its derivative."""
    lanes = lanes_in(chances)
    mass[:] = 0.0
    mass_tangent[:] = 0.0
    mass[states - 1] = 1.0
    for t in range(frames, 0, -1):
        for s in range(0, states, lanes):
            at = 3 * width * t + s
            q, q_tangent = splat_wide(0.0, chances), splat_wide(0.0, chances)
            for way in range(3):
                high, high_tangent = load_wide(mass, s + way, chances), load_wide(mass_tangent, s + way, chances)
                x, y = _passed(high, high_tangent, way, chances, chance_tangents, at + way * width, chances)
                q, q_tangent = q + x, q_tangent + y
            store(mass, s, q)
            store(mass_tangent, s, q_tangent)
        for s in range(states - 1):
            out[begin + (t - 1) * stride + symbols[s]] += mass_tangent[s]


@kernel
def tangents(worker, workers, scores, lengths, target_lengths, targets, blank, mode, direction, out, value, codes):
    """Write entropies, or tangents of log-partitions, and derivatives of marginals over zeros; `codes` as of `kernels.sums`."""
    lanes, frames, stride, keep = lanes_in(scores), scores.shape[1], scores.shape[2], mode != Mode.ENTROPY
    flat, flat_out, flat_direction, size = scores.reshape(-1), out.reshape(-1), direction.reshape(-1), frames * stride
    width = rounded(2 * targets.shape[1] + 2, lanes)
    chances = aligned(3 * width * (frames + 1) + lanes, scores)
    chance_tangents = aligned(3 * width * (frames + 1) * keep + lanes, value)
    chances[len(chances) - lanes :] = 0.0
    chance_tangents[len(chance_tangents) - lanes :] = 0.0
    numbers, lines = aligned(width, scores), aligned(2 * (lanes + width), value)
    mass, mass_tangent, zeros = np.zeros(width + lanes), np.zeros(width + lanes), np.zeros(width)
    symbols, skips = np.zeros(width, np.int64), aligned(width, value)
    work = symbols, skips, numbers, lines
    for b in range(worker, len(scores), workers):
        n, begin = lengths[b], b * size
        states, value[b] = climb(flat, begin, n, stride, targets[b], target_lengths[b], blank, work, chances, False, True)
        codes[b] = states == 0
        if codes[b]:
            continue
        numbers[states:] = 0.0
        value[b] = _goal_tangent(
            flat_direction, begin, n, stride, states, work, zeros, mode != Mode.TANGENT, chances, chance_tangents, keep
        )
        if keep:
            _downward(begin, n, stride, states, symbols, chances, chance_tangents, mass, mass_tangent, width, flat_out)
