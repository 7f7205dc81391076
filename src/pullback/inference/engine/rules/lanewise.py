"""The steps that the kernels of a recursion do lane by lane: seeds, results, and directions."""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba import packing as blocks
from pullback.inference._numba.compile import called, inline
from pullback.inference._numba.lanes import exp, larger, load, splat, store, where_larger
from pullback.inference._numba.scratch import carve
from pullback.inference._numba.vectors import narrow, widen
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.engine.rules.numbers import at, below_power, constant, flat_tangent, flat_value, put
from pullback.inference.engine.rules.packing import bases_of, lanes_of
from pullback.inference.front.checks import INFINITE, NAN, OK


@called
def limit_of(array):
    """The largest product of an inside and an outside value that is accepted: lost shares are then below 1e-10.

    A lost weight, or one that is not normal, is multiplied by an outside value and by what its arc or span contains.
    """
    return 1e28 if array.itemsize == 4 else 1e280


@called
def lane_scratch(work, at, lanes, dtype, largest):
    """The arrays of a group, one entry per lane: lengths, codes and peaks; scale and factor; bases; and a stack of items."""
    lengths, at = carve(work, at, lanes, dtype)
    codes, at = carve(work, at, lanes, dtype)
    peaks, at = carve(work, at, lanes, dtype)
    scale, at = carve(work, at, lanes, np.float64)
    factor, at = carve(work, at, lanes, np.float64)
    bases, at = carve(work, at, lanes, np.int64)
    stack, at = carve(work, at, 3 * (4 * largest + 8), np.int64)
    return lengths, codes, peaks, scale, factor, bases, stack.reshape(4 * largest + 8, 3)


@called
def seed(lane_lengths, n, goal, places, seeds):
    """One over each lane's value at its size, zero elsewhere."""
    lanes = lanes_of(seeds)
    for i in range((n + 1) * lanes):
        seeds[i] = 0.0
    for lane in range(lanes):
        size = int(lane_lengths[lane])
        if size > 0:
            seeds[size * lanes + lane] = 1 / goal[places[lane]]


@called
def seed_tangent(lane_lengths, n, tangent, places, seeds, out):
    """The tangent of 1/Z is -Z'/Z^2."""
    lanes = lanes_of(seeds)
    for i in range((n + 1) * lanes):
        out[i] = 0.0
    for lane in range(lanes):
        size = int(lane_lengths[lane])
        if size > 0:
            at = size * lanes + lane
            out[at] = -tangent[places[lane]] * seeds[at] * seeds[at]


@called
def expect(lane_lengths, seeds, peaks):
    """Multiply the largest inside value of each lane by what the largest outside value over Z may be, where none is known."""
    lanes = lanes_of(seeds)
    for lane in range(lanes):
        size = int(lane_lengths[lane])
        if size > 0:
            peaks[lane] *= peaks[lane] * seeds[size * lanes + lane]


@called
def finish(group, order, codes, peaks, lane_lengths, log_scale, goal, places, log_z, status):
    """Write each lane's log-partition and status; `peaks` has its largest inside times its largest outside value."""
    lanes, limit = lanes_of(codes), limit_of(codes)
    for lane in range(min(lanes, len(order) - group)):
        example = order[group + lane]
        z = goal[places[lane]] if lane_lengths[lane] > 0 else 1.0
        log_z[example] = np.nan
        if codes[lane] > 0:
            status[example] = INFINITE if codes[lane] == 1 else NAN
        elif peaks[lane] <= limit:
            status[example] = OK
            log_z[example] = log_scale[lane] + math.log(z)
        else:
            status[example] = OUT_OF_RANGE


@called
def pack_direction(direction, n, upper, order, first, weights, none, tangents, bases):
    """Write a direction, 0 on parts whose weight is not larger than `none`."""
    lanes, side = lanes_of(weights), direction.shape[-1]
    bases_of(order, first, side * side, bases)
    blocks.pack(direction.reshape(-1), bases, n * side, tangents)
    zero, least = splat(weights, 0.0), splat(weights, none)
    for h in range(n):
        for m in range(side):
            at_ = (h * side + m) * lanes
            real = m < n and not (upper and m < h)
            store(tangents, at_, where_larger(load(weights, at_), least, load(tangents, at_), zero) if real else zero)


@called
def normalise(tangents, n, side, upper, line, factor):
    """Divide a direction by its largest entry in each lane, or by a number next to 0, which is kept in `factor`."""
    lanes = lanes_of(tangents)
    row, zero, one = side * lanes, splat(tangents, 0.0), splat(tangents, 1.0)
    top = splat(tangents, 1e-37 if tangents.itemsize == 4 else 1e-307)
    for h in range(n):
        for at_ in range(h * row + upper * h * lanes, h * row + n * lanes, lanes):
            v = load(tangents, at_)
            top = larger(zero - v, larger(v, top))
    store(line, 0, top)
    for lane in range(lanes):
        factor[lane] = line[lane]
    inverse = one / top
    for h in range(n):
        for at_ in range(h * row + upper * h * lanes, h * row + n * lanes, lanes):
            store(tangents, at_, load(tangents, at_) * inverse)


@called
def weigh(tangents, weights, n, side, upper):
    """The tangents of weights from those of their logarithms."""
    lanes = lanes_of(weights)
    for h in range(n):
        for at_ in range((h * side + upper * h) * lanes, (h * side + n) * lanes, lanes):
            store(tangents, at_, load(tangents, at_) * load(weights, at_))


@inline
def scaled_weight(packed, exponents, at, top):
    """Turn a vector of scores into weights with exponents, over 2^top; 0 for -inf."""
    x = load(packed, at)
    k, r = below_power(widen(x), top, exponents)
    zero = splat(packed, 0.0)
    put((packed, exponents), at, (where_larger(x, splat(packed, -np.inf), exp(narrow(r, packed)), zero), k))


@called
def seed_scaled(lane_lengths, n, goal, places, seeds):
    """`seed` for numbers with exponents, and for their tangents, if there are any."""
    lanes = lanes_of(seeds[0])
    for i in range(0, (n + 1) * lanes, lanes):
        put(seeds, i, constant(seeds, 0.0))
    for lane in range(lanes):
        size = int(lane_lengths[lane])
        if size > 0 and goal[0][places[lane]] > 0.0:
            at = size * lanes + lane
            z = goal[0][places[lane]]
            seeds[0][at] = 1.0 / z
            seeds[-1][at] = -goal[-1][places[lane]]
            if len(seeds) > 2:
                seeds[1][at] = -goal[1][places[lane]] / z / z


@called
def finish_scaled(group, order, codes, lane_lengths, log_scale, goal, places, log_z, status):
    """`finish` for numbers with exponents: only scores of which nearly all are needed leave their range.

    `log_scale` has the exponent that was taken off, a whole number.
    """
    lanes, exponents = lanes_of(codes), goal[-1]
    least = -(2 ** (8 * exponents.itemsize - 8))
    for lane in range(min(lanes, len(order) - group)):
        example, at = order[group + lane], places[lane]
        some = lane_lengths[lane] > 0
        log_z[example] = 0.0
        if codes[lane] > 0:
            status[example] = INFINITE if codes[lane] == 1 else NAN
        elif some and not (goal[0][at] > 0.0 and exponents[at] > least):  # a sum beside zeros may be rounded to 0 down there
            status[example] = OUT_OF_RANGE
        else:
            status[example] = OK
            if some:  # whole numbers first: large ones cancel without rounding
                log_z[example] = math.log(goal[0][at]) + (log_scale[lane] + exponents[at]) * math.log(2.0)


@called
def flatten(chart, count):
    """Replace values by those without exponents."""
    for at_ in range(0, count * lanes_of(chart[0]), lanes_of(chart[0])):
        store(chart[0], at_, flat_value(at(chart, at_)))


@called
def flatten_tangents(chart, count):
    """Replace derivatives by those without exponents."""
    for at_ in range(0, count * lanes_of(chart[0]), lanes_of(chart[0])):
        store(chart[1], at_, flat_tangent(at(chart, at_)))
