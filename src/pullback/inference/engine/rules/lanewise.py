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
from pullback.inference.engine.rules.numbers import (
    at,
    below_power,
    constant,
    copy_lane,
    far_power,
    over,
    put,
    share_of,
    whole_powers,
)
from pullback.inference.engine.rules.packing import bases_of, lanes_of
from pullback.inference.front.checks import INFEASIBLE, INFINITE, NAN, OK


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


@inline
def places_of(goal_of, n, lane_lengths, places):
    """Write where the goal of each lane is."""
    lanes = lanes_of(lane_lengths)
    for lane in range(lanes):
        places[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane


@called
def seed(lane_lengths, n, goal, places, seeds):
    """One over each lane's value at its size, zero elsewhere; what is at size 0 has no use."""
    lanes = lanes_of(lane_lengths)
    for lane in range(lanes):
        copy_lane(goal, places[lane], seeds, lane)
    put(seeds, 0, over(constant(seeds, 1.0), at(seeds, 0)))
    for i in range(lanes, (n + 1) * lanes, lanes):
        put(seeds, i, constant(seeds, 0.0))
    for lane in range(lanes):
        size = int(lane_lengths[lane])
        if size > 0:
            copy_lane(seeds, lane, seeds, size * lanes + lane)


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
    limit = limit_of(codes)
    for lane in range(min(lanes_of(codes), len(order) - group)):
        example, right = order[group + lane], peaks[lane] <= limit
        z = goal[places[lane]] if lane_lengths[lane] > 0 else 1.0
        log_z[example] = log_scale[lane] + math.log(z) if right else np.nan
        status[example] = status_of(codes[lane], right, OUT_OF_RANGE)


@inline
def status_of(code, right, otherwise):
    """The status of an example: what is wrong with its scores, or `otherwise` if it is not `right`."""
    if code > 0:
        return INFINITE if code == 1 else NAN
    return OK if right else otherwise


@called
def pack_direction(direction, n, upper, order, first, weights, tangents, bases):
    """Write a direction, 0 on parts without weight."""
    lanes, side = lanes_of(weights), direction.shape[-1]
    bases_of(order, first, side * side, bases)
    blocks.pack(direction.reshape(-1), bases, n * side, tangents)
    zero = splat(weights, 0.0)
    for h in range(n):
        for m in range(side):
            at_ = (h * side + m) * lanes
            real = m < n and not (upper and m < h)
            store(tangents, at_, where_larger(load(weights, at_), zero, load(tangents, at_), zero) if real else zero)


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


@inline
def _cells(i, group, n, row, lanes, upper):
    """Where the parts of a group begin and end in row i: all structures have as many parts of a group as the others.

    Groups are the columns; with `upper` all parts on and above the diagonal are one.
    """
    return (i * (row + lanes), i * row + n * lanes) if upper else (i * row + group * lanes, i * row + (group + 1) * lanes)


@called
def to_scaled(packed, exponents, n, side, upper, lane_lengths, log_scale, factor):
    """Turn scores into weights with exponents: each group's over a power of two next to the largest one.

    `log_scale` gets the exponent that all structures have taken off, and `factor` is scratch.
    """
    lanes = lanes_of(packed)
    row, none = side * lanes, splat(packed, -np.inf)
    for lane in range(lanes):
        log_scale[lane] = 0.0
    for group in range(1 if upper else n):
        top = none
        for i in range(n):
            first, stop = _cells(i, group, n, row, lanes, upper)
            for at_ in range(first, stop, lanes):
                top = larger(load(packed, at_), top)
        power = whole_powers(widen(where_larger(top, none, top, splat(packed, 0.0))))
        for i in range(n):
            first, stop = _cells(i, group, n, row, lanes, upper)
            for at_ in range(first, stop, lanes):
                scaled_weight(packed, exponents, at_, power)
        store(factor, 0, power)
        for lane in range(lanes):
            log_scale[lane] += (2 * lane_lengths[lane] - 1) * factor[lane] if upper else factor[lane]


@called
def centre(tangents, weights, n, side, upper):
    """Subtract from a direction its mean over each group's parts, which changes no result but keeps digits.

    What has no weight stays 0: the largest entry scales the direction, and must not depend on an example's padding.
    """
    lanes = lanes_of(weights)
    row, zero, one = side * lanes, splat(weights, 0.0), splat(weights, 1.0)
    for group in range(1 if upper else n):
        total, number = zero, zero
        for i in range(n):
            first, stop = _cells(i, group, n, row, lanes, upper)
            for at_ in range(first, stop, lanes):
                used = where_larger(load(weights, at_), zero, one, zero)
                total, number = total + load(tangents, at_), number + used
        mean = total / larger(number, one)
        for i in range(n):
            first, stop = _cells(i, group, n, row, lanes, upper)
            for at_ in range(first, stop, lanes):
                store(tangents, at_, load(tangents, at_) - where_larger(load(weights, at_), zero, mean, zero))


@called
def to_far(chart, n, side, upper):
    """Turn scores of any size into weights with all exponents."""
    packed = chart[0]
    lanes, none, zero = lanes_of(packed), splat(packed, -np.inf), splat(packed, 0.0)
    top = zero
    for h in range(n):
        for at_ in range((h * side + upper * h) * lanes, (h * side + n) * lanes, lanes):
            x = load(packed, at_)
            top = larger(where_larger(x, none, larger(x, zero - x), zero), top)
    for h in range(n):
        for at_ in range((h * side + upper * h) * lanes, (h * side + n) * lanes, lanes):
            x = load(packed, at_)
            k, h, g, r = far_power(x, top)
            put(chart, at_, (where_larger(x, none, exp(r), zero), k, h, g))


@called
def finish_scaled(group, order, codes, lane_lengths, log_scale, goal, exponents, places, log_z, status):
    """`finish` for numbers with exponents: only scores of which nearly all are needed leave their range.

    `log_scale` has the exponent that was taken off, a whole number.
    """
    least = -(2 ** (8 * exponents.itemsize - 8))
    for lane in range(min(lanes_of(codes), len(order) - group)):
        example, at, some = order[group + lane], places[lane], lane_lengths[lane] > 0
        right = not some or (goal[at] > 0.0 and exponents[at] > least)  # a sum beside zeros may be rounded to 0 down there
        log_z[example] = 0.0
        if some and right:  # whole numbers first: large ones cancel without rounding
            log_z[example] = math.log(goal[at]) + (log_scale[lane] + exponents[at]) * math.log(2.0)
        status[example] = status_of(codes[lane], right, OUT_OF_RANGE)


@called
def finish_far(group, order, codes, lane_lengths, goal, near, far, farther, places, log_z, status):
    """The same with all exponents, which nothing leaves."""
    for lane in range(min(lanes_of(codes), len(order) - group)):
        example, at, some = order[group + lane], places[lane], lane_lengths[lane] > 0
        right, log_z[example] = not some or goal[at] > 0.0, 0.0
        if some and right:
            log_z[example] = math.log(goal[at]) + math.log(2.0) * near[at]
            log_z[example] += 2.0**44 * math.log(2.0) * far[at] + 2.0**84 * math.log(2.0) * farther[at]
        status[example] = status_of(codes[lane], right, INFEASIBLE)


@called
def flatten(chart, count):
    """Replace the probabilities of parts by results."""
    for at_ in range(0, count * lanes_of(chart[0]), lanes_of(chart[0])):
        store(chart[0], at_, share_of(at(chart, at_)))
