"""Generated from rules.py by `python -m pullback.inference.engine.rules`: do not edit.

The loops of the recursion for examples side by side in SIMD lanes, and the kernels of all operations.
"""

# ruff: noqa
from __future__ import annotations

import numpy as np

from pullback.inference.front.checks import INFEASIBLE, OK
from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.vectors import load_wide, splat_wide, widen
from pullback.inference._numba.lanes import larger, load, splat, splat_index, store, store_index, where_larger
from pullback.inference.engine.rules.choices import choose, choose_scaled, uniform
from pullback.inference.engine.rules.lanewise import (
    centre, expect, finish, finish_far, finish_scaled, flatten, lane_scratch, limit_of, normalise, pack_direction, places_of,
    seed, status_of, to_far, to_scaled, weigh,
)
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.engine.rules.numbers import at, constant, plus, put, times, times_plus, value_of
from pullback.inference.engine.rules.packing import clear, clear_all, lanes_of, pack, pitch_of, scale, unpack
from pullback.inference._numba.scratch import carve
from pullback.inference.cky.scaling import to_weights

OPTIONS = ()
UPPER = True
CHARTS = {
    "argmax": 4,
    "marginals": 3,
    "product": 6,
    "sample": 3,
    "marginals_scaled": 6,
    "product_scaled": 9,
    "sample_scaled": 6,
    "marginals_far": 12,
    "product_far": 15,
    "sample_far": 12,
    "entropies_far": 15,
}
LINES = 8


@called
def inside(n, side, lanes, weights, inside0, peak):
    """Fill the inside values; returns the largest value, at least `peak`."""
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n):
        put(inside0, j * row + (j + 1) * lanes, at(weights, j * across + j * lanes))
    for j in range(-(-n % 4), n, 4):
        for i in range(j + 2, -1, -1):
            # split(i, j): span(i, k) span(k + 1, j) over k = i ... j - 1
            split0 = constant(weights, 0.0)
            split1 = constant(weights, 0.0)
            split2 = constant(weights, 0.0)
            split3 = constant(weights, 0.0)
            for k in range(i, j):
                split0 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 1) * lanes), split0)
                split1 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 2) * lanes), split1)
                split2 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 3) * lanes), split2)
                split3 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 4) * lanes), split3)
            if i < j:
                peak = larger(value_of(split0), peak)
                span0 = times(split0, at(weights, i * across + j * lanes))
                put(inside0, i * row + (j + 1) * lanes, span0)
            if i < j + 1:
                for k in range(max(i, j), j + 1):
                    split1 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 2) * lanes), split1)
                peak = larger(value_of(split1), peak)
                span1 = times(split1, at(weights, i * across + (j + 1) * lanes))
                put(inside0, i * row + (j + 2) * lanes, span1)
            if i < j + 2:
                for k in range(max(i, j), j + 2):
                    split2 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 3) * lanes), split2)
                peak = larger(value_of(split2), peak)
                span2 = times(split2, at(weights, i * across + (j + 2) * lanes))
                put(inside0, i * row + (j + 3) * lanes, span2)
            if i < j + 3:
                for k in range(max(i, j), j + 3):
                    split3 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (k + 1) * row + (j + 4) * lanes), split3)
                peak = larger(value_of(split3), peak)
                span3 = times(split3, at(weights, i * across + (j + 3) * lanes))
                put(inside0, i * row + (j + 4) * lanes, span3)
    return peak


@called
def outside(n, side, lanes, weights, inside0, outside0, seeds, peak):
    """Fill the outside values over Z, from 1/Z at each example's size in `seeds`; marginals replace the weights.

    Returns the largest value, at least `peak`.
    """
    row, across = pitch_of(n) * lanes, side * lanes
    for i in range(0, n, 4):
        for j in range(n - 1, i - 1, -1):
            out_span0 = at(seeds, (j + 1) * lanes) if i == 0 else constant(weights, 0.0)
            out_split0 = constant(weights, 0.0)
            out_span1 = at(seeds, (j + 1) * lanes) if i + 1 == 0 else constant(weights, 0.0)
            out_split1 = constant(weights, 0.0)
            out_span2 = at(seeds, (j + 1) * lanes) if i + 2 == 0 else constant(weights, 0.0)
            out_split2 = constant(weights, 0.0)
            out_span3 = at(seeds, (j + 1) * lanes) if i + 3 == 0 else constant(weights, 0.0)
            out_split3 = constant(weights, 0.0)
            for t in range(j + 1, n):
                out_span0 = times_plus(at(outside0, t * row + i * lanes), at(inside0, (j + 1) * row + (t + 1) * lanes), out_span0)
                out_span1 = times_plus(at(outside0, t * row + (i + 1) * lanes), at(inside0, (j + 1) * row + (t + 1) * lanes), out_span1)
                out_span2 = times_plus(at(outside0, t * row + (i + 2) * lanes), at(inside0, (j + 1) * row + (t + 1) * lanes), out_span2)
                out_span3 = times_plus(at(outside0, t * row + (i + 3) * lanes), at(inside0, (j + 1) * row + (t + 1) * lanes), out_span3)
            for t in range(i):
                out_span0 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + i * lanes), out_span0)
                out_span1 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + (i + 1) * lanes), out_span1)
                out_span2 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + (i + 2) * lanes), out_span2)
                out_span3 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + (i + 3) * lanes), out_span3)
            if i <= j:
                peak = larger(value_of(out_span0), peak)
                put(outside0, i * row + (j + 1) * lanes, out_span0)
                span0_weight = at(weights, i * across + j * lanes)
                put(weights, i * across + j * lanes, times(out_span0, at(inside0, i * row + (j + 1) * lanes)))
                out_split0 = times_plus(out_span0, span0_weight, out_split0)
                peak = larger(value_of(out_split0), peak)
                put(outside0, j * row + i * lanes, out_split0)
            if i + 1 <= j:
                for t in range(i, i + 1):
                    out_span1 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + (i + 1) * lanes), out_span1)
                peak = larger(value_of(out_span1), peak)
                put(outside0, (i + 1) * row + (j + 1) * lanes, out_span1)
                span1_weight = at(weights, (i + 1) * across + j * lanes)
                put(weights, (i + 1) * across + j * lanes, times(out_span1, at(inside0, (i + 1) * row + (j + 1) * lanes)))
                out_split1 = times_plus(out_span1, span1_weight, out_split1)
                peak = larger(value_of(out_split1), peak)
                put(outside0, j * row + (i + 1) * lanes, out_split1)
            if i + 2 <= j:
                for t in range(i, i + 2):
                    out_span2 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + (i + 2) * lanes), out_span2)
                peak = larger(value_of(out_span2), peak)
                put(outside0, (i + 2) * row + (j + 1) * lanes, out_span2)
                span2_weight = at(weights, (i + 2) * across + j * lanes)
                put(weights, (i + 2) * across + j * lanes, times(out_span2, at(inside0, (i + 2) * row + (j + 1) * lanes)))
                out_split2 = times_plus(out_span2, span2_weight, out_split2)
                peak = larger(value_of(out_split2), peak)
                put(outside0, j * row + (i + 2) * lanes, out_split2)
            if i + 3 <= j:
                for t in range(i, i + 3):
                    out_span3 = times_plus(at(outside0, j * row + t * lanes), at(inside0, t * row + (i + 3) * lanes), out_span3)
                peak = larger(value_of(out_span3), peak)
                put(outside0, (i + 3) * row + (j + 1) * lanes, out_span3)
                span3_weight = at(weights, (i + 3) * across + j * lanes)
                put(weights, (i + 3) * across + j * lanes, times(out_span3, at(inside0, (i + 3) * row + (j + 1) * lanes)))
                out_split3 = times_plus(out_span3, span3_weight, out_split3)
                peak = larger(value_of(out_split3), peak)
                put(outside0, j * row + (i + 3) * lanes, out_split3)
    return peak


@called
def best(n, side, lanes, weights, inside0, choice0):
    """Fill the largest values, and which term each comes from: the first, if several are largest."""
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n):
        store(inside0, j * row + (j + 1) * lanes, widen(load(weights, j * across + j * lanes)))
    for j in range(-(-n % 4), n, 4):
        for i in range(j + 2, -1, -1):
            # split(i, j): span(i, k) span(k + 1, j) over k = i ... j - 1
            split0 = splat_wide(-np.inf, weights)
            split0_at = splat_index(split0, i)
            split1 = splat_wide(-np.inf, weights)
            split1_at = splat_index(split1, i)
            split2 = splat_wide(-np.inf, weights)
            split2_at = splat_index(split2, i)
            split3 = splat_wide(-np.inf, weights)
            split3_at = splat_index(split3, i)
            for k in range(i, j):
                x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 1) * lanes, weights)
                split0_at = where_larger(x, split0, splat_index(split0, k), split0_at)
                split0 = larger(x, split0)
                x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 2) * lanes, weights)
                split1_at = where_larger(x, split1, splat_index(split1, k), split1_at)
                split1 = larger(x, split1)
                x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 3) * lanes, weights)
                split2_at = where_larger(x, split2, splat_index(split2, k), split2_at)
                split2 = larger(x, split2)
                x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 4) * lanes, weights)
                split3_at = where_larger(x, split3, splat_index(split3, k), split3_at)
                split3 = larger(x, split3)
            if i < j:
                store_index(choice0, i * row + (j + 1) * lanes, split0_at)
                span0 = split0 + widen(load(weights, i * across + j * lanes))
                store(inside0, i * row + (j + 1) * lanes, span0)
            if i < j + 1:
                for k in range(max(i, j), j + 1):
                    x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 2) * lanes, weights)
                    split1_at = where_larger(x, split1, splat_index(split1, k), split1_at)
                    split1 = larger(x, split1)
                store_index(choice0, i * row + (j + 2) * lanes, split1_at)
                span1 = split1 + widen(load(weights, i * across + (j + 1) * lanes))
                store(inside0, i * row + (j + 2) * lanes, span1)
            if i < j + 2:
                for k in range(max(i, j), j + 2):
                    x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 3) * lanes, weights)
                    split2_at = where_larger(x, split2, splat_index(split2, k), split2_at)
                    split2 = larger(x, split2)
                store_index(choice0, i * row + (j + 3) * lanes, split2_at)
                span2 = split2 + widen(load(weights, i * across + (j + 2) * lanes))
                store(inside0, i * row + (j + 3) * lanes, span2)
            if i < j + 3:
                for k in range(max(i, j), j + 3):
                    x = load_wide(inside0, i * row + (k + 1) * lanes, weights) + load_wide(inside0, (k + 1) * row + (j + 4) * lanes, weights)
                    split3_at = where_larger(x, split3, splat_index(split3, k), split3_at)
                    split3 = larger(x, split3)
                store_index(choice0, i * row + (j + 4) * lanes, split3_at)
                span3 = split3 + widen(load(weights, i * across + (j + 3) * lanes))
                store(inside0, i * row + (j + 4) * lanes, span3)


@called
def goal_of(size, n, lanes):
    """Where the value of an example of some size begins."""
    row = pitch_of(n) * lanes
    return size * lanes


@called
def follow(size, n, lanes, lane, choice0, stack, z, base, side):
    """Write the parts of the best structure of a lane."""
    row = pitch_of(n) * lanes
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, size - 1
    height = 1
    while height > 0:
        height -= 1
        item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        if item == 0:  # span
            if i == j:
                z[base + i * side + i] = 1.0
                continue
            z[base + i * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 1, i, j
            height += 1
        elif item == 1:  # split
            k = np.int64(choice0[i * row + (j + 1) * lanes + lane])
            stack[height, 0], stack[height, 1], stack[height, 2] = 0, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, k + 1, j
            height += 2


@called
def draw(size, n, lanes, lane, inside0, least, seed, stack, z, base, side):
    """Draw a structure of a lane; False where a value on the way is below `least`, and too small to trust."""
    row = pitch_of(n) * lanes
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, size - 1
    height = 1
    drawn = 0
    while height > 0:
        height -= 1
        item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        if item == 0:  # span
            if i == j:
                z[base + i * side + i] = 1.0
                continue
            if not inside0[i * row + (j + 1) * lanes + lane] >= least:
                return False
            z[base + i * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 1, i, j
            height += 1
        elif item == 1:  # split
            u, drawn = uniform(seed, drawn)
            k = i + choose(inside0, i * row + (i + 1) * lanes + lane, lanes, inside0, (i + 1) * row + (j + 1) * lanes + lane, row, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 0, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, k + 1, j
            height += 2
    return True


@called
def draw_scaled(size, n, lanes, lane, inside0, seed, stack, z, base, side):
    """Draw a structure of a lane from numbers with exponents."""
    row = pitch_of(n) * lanes
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, size - 1
    height = 1
    drawn = 0
    while height > 0:
        height -= 1
        item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        if item == 0:  # span
            if i == j:
                z[base + i * side + i] = 1.0
                continue
            z[base + i * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 1, i, j
            height += 1
        elif item == 1:  # split
            u, drawn = uniform(seed, drawn)
            k = i + choose_scaled(inside0, i * row + (i + 1) * lanes + lane, lanes, inside0, (i + 1) * row + (j + 1) * lanes + lane, row, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 0, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, k + 1, j
            height += 2
    return True


@no_alloc_kernel
def argmax(worker, workers, scores, lengths, order, scratch, z, status):
    """Write the best structures of `[B, n, n]` scores as zeros and ones; a status other than OK leaves zeros."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, np.float64)
    choice0, at = carve(work, at, square, np.int16)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        best(n, side, lanes, weights, inside0, choice0)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            found = size == 0 or inside0[goal_of(size, n, lanes) + lane] > -np.inf
            status[example] = status_of(codes[lane], found, INFEASIBLE)
            if status[example] == OK and size > 0:
                follow(size, n, lanes, lane, choice0, stack, z.reshape(-1), example * side * side, side)


@no_alloc_kernel
def marginals(worker, workers, scores, lengths, order, scratch, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        peak = inside(n, side, lanes, weights, inside0, splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, inside0, bases, seeds)
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, weights, inside0, outside0, seeds, splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside0, bases, log_z, status)
        if mu.size > 0:
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product(worker, workers, scores, lengths, order, scratch, direction, out, log_z, status):
    """Write the derivative of the marginals along a direction."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    d_weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, dtype)
    d_inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        pack_direction(direction, n, UPPER, order, group, weights, d_weights, bases)
        centre(d_weights, weights, n, side, UPPER)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        peak = inside(n, side, lanes, (weights, d_weights), (inside0, d_inside0), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside0, d_inside0), bases, (seeds, d_seeds))
        outer = outside(n, side, lanes, (weights, d_weights), (inside0, d_inside0), (outside0, d_outside0), (seeds, d_seeds), splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside0, bases, log_z, status)
        flatten((weights, d_weights), n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)


@no_alloc_kernel
def sample(worker, workers, scores, lengths, order, scratch, streams, z, log_z, status):
    """Draw structures; an example whose path meets a value too small gets OUT_OF_RANGE."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        store(peaks, 0, inside(n, side, lanes, weights, inside0, splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside0, bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = inside0[bases[lane]] >= peaks[lane] / limit_of(scores) and draw(size, n, lanes, lane, inside0, peaks[lane] / limit_of(scores), streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def marginals_scaled(worker, workers, scores, lengths, order, scratch, like, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions, with an exponent for each number."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, UPPER, lane_lengths, log_scale, factor)
        peak = inside(n, side, lanes, (weights, e_weights), (inside0, e_inside0), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside0, e_inside0), bases, (seeds, e_seeds))
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, (weights, e_weights), (inside0, e_inside0), (outside0, e_outside0), (seeds, e_seeds), splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish_scaled(group, order, codes, lane_lengths, log_scale, inside0, e_inside0, bases, log_z, status)
        if mu.size > 0:
            flatten((weights, e_weights), n * side)
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product_scaled(worker, workers, scores, lengths, order, scratch, like, direction, out, log_z, status):
    """Write the derivative of the marginals along a direction, with an exponent for each number."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    d_weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    inside0, at = carve(work, at, square, dtype)
    d_inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    outside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, UPPER, lane_lengths, log_scale, factor)
        pack_direction(direction, n, UPPER, order, group, weights, d_weights, bases)
        centre(d_weights, weights, n, side, UPPER)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        peak = inside(n, side, lanes, (weights, d_weights, e_weights), (inside0, d_inside0, e_inside0), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside0, d_inside0, e_inside0), bases, (seeds, d_seeds, e_seeds))
        outer = outside(n, side, lanes, (weights, d_weights, e_weights), (inside0, d_inside0, e_inside0), (outside0, d_outside0, e_outside0), (seeds, d_seeds, e_seeds), splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        finish_scaled(group, order, codes, lane_lengths, log_scale, inside0, e_inside0, bases, log_z, status)
        flatten((weights, d_weights, e_weights), n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)


@no_alloc_kernel
def sample_scaled(worker, workers, scores, lengths, order, scratch, like, streams, z, log_z, status):
    """Draw structures, with an exponent for each number; an example whose path meets a value too small gets OUT_OF_RANGE."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, UPPER, lane_lengths, log_scale, factor)
        store(peaks, 0, inside(n, side, lanes, (weights, e_weights), (inside0, e_inside0), splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        finish_scaled(group, order, codes, lane_lengths, log_scale, inside0, e_inside0, bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = draw_scaled(size, n, lanes, lane, (inside0, e_inside0), streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def marginals_far(worker, workers, scores, lengths, order, scratch, like, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions, for scores of any size."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    h_weights, at = carve(work, at, parts, np.float64)
    g_weights, at = carve(work, at, parts, np.float64)
    inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    h_inside0, at = carve(work, at, square, np.float64)
    g_inside0, at = carve(work, at, square, np.float64)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    h_seeds, at = carve(work, at, line, np.float64)
    g_seeds, at = carve(work, at, line, np.float64)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)
        peak = inside(n, side, lanes, (weights, e_weights, h_weights, g_weights), (inside0, e_inside0, h_inside0, g_inside0), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside0, e_inside0, h_inside0, g_inside0), bases, (seeds, e_seeds, h_seeds, g_seeds))
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, (weights, e_weights, h_weights, g_weights), (inside0, e_inside0, h_inside0, g_inside0), (outside0, e_outside0, h_outside0, g_outside0), (seeds, e_seeds, h_seeds, g_seeds), splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish_far(group, order, codes, lane_lengths, inside0, e_inside0, h_inside0, g_inside0, bases, log_z, status)
        if mu.size > 0:
            flatten((weights, e_weights, h_weights, g_weights), n * side)
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product_far(worker, workers, scores, lengths, order, scratch, like, direction, out, log_z, status):
    """Write the derivative of the marginals along a direction, for scores of any size."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    d_weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    h_weights, at = carve(work, at, parts, np.float64)
    g_weights, at = carve(work, at, parts, np.float64)
    inside0, at = carve(work, at, square, dtype)
    d_inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    h_inside0, at = carve(work, at, square, np.float64)
    g_inside0, at = carve(work, at, square, np.float64)
    outside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    h_seeds, at = carve(work, at, line, np.float64)
    g_seeds, at = carve(work, at, line, np.float64)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)
        pack_direction(direction, n, UPPER, order, group, weights, d_weights, bases)
        centre(d_weights, weights, n, side, UPPER)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        peak = inside(n, side, lanes, (weights, d_weights, e_weights, h_weights, g_weights), (inside0, d_inside0, e_inside0, h_inside0, g_inside0), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside0, d_inside0, e_inside0, h_inside0, g_inside0), bases, (seeds, d_seeds, e_seeds, h_seeds, g_seeds))
        outer = outside(n, side, lanes, (weights, d_weights, e_weights, h_weights, g_weights), (inside0, d_inside0, e_inside0, h_inside0, g_inside0), (outside0, d_outside0, e_outside0, h_outside0, g_outside0), (seeds, d_seeds, e_seeds, h_seeds, g_seeds), splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        finish_far(group, order, codes, lane_lengths, inside0, e_inside0, h_inside0, g_inside0, bases, log_z, status)
        flatten((weights, d_weights, e_weights, h_weights, g_weights), n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)


@no_alloc_kernel
def sample_far(worker, workers, scores, lengths, order, scratch, like, streams, z, log_z, status):
    """Draw structures, for scores of any size; an example whose path meets a value too small gets OUT_OF_RANGE."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    h_weights, at = carve(work, at, parts, np.float64)
    g_weights, at = carve(work, at, parts, np.float64)
    inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    h_inside0, at = carve(work, at, square, np.float64)
    g_inside0, at = carve(work, at, square, np.float64)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    h_seeds, at = carve(work, at, line, np.float64)
    g_seeds, at = carve(work, at, line, np.float64)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)
        store(peaks, 0, inside(n, side, lanes, (weights, e_weights, h_weights, g_weights), (inside0, e_inside0, h_inside0, g_inside0), splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        finish_far(group, order, codes, lane_lengths, inside0, e_inside0, h_inside0, g_inside0, bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = draw_scaled(size, n, lanes, lane, (inside0, e_inside0, h_inside0, g_inside0), streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def entropies_far(worker, workers, scores, lengths, order, scratch, like, out, value, status):
    """Entropies, and their gradients, unless there is no room for them, for scores of any size."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    e_weights, at = carve(work, at, parts, whole)
    h_weights, at = carve(work, at, parts, np.float64)
    g_weights, at = carve(work, at, parts, np.float64)
    n_weights, at = carve(work, at, parts, np.float64)
    inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    h_inside0, at = carve(work, at, square, np.float64)
    g_inside0, at = carve(work, at, square, np.float64)
    n_inside0, at = carve(work, at, square, np.float64)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    n_outside0, at = carve(work, at, square, np.float64)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    h_seeds, at = carve(work, at, line, np.float64)
    g_seeds, at = carve(work, at, line, np.float64)
    n_seeds, at = carve(work, at, line, np.float64)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)
        clear_all(n_weights, n * side * lanes)
        inside(n, side, lanes, (weights, e_weights, h_weights, g_weights, n_weights), (inside0, e_inside0, h_inside0, g_inside0, n_inside0), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        finish_far(group, order, codes, lane_lengths, inside0, e_inside0, h_inside0, g_inside0, bases, value, status)
        for lane in range(min(lanes, len(order) - group)):
            value[order[group + lane]] = max(n_inside0[bases[lane]], 0.0) if lane_lengths[lane] > 0 else 0.0
        if out.size > 0:
            seed(lane_lengths, n, (inside0, e_inside0, h_inside0, g_inside0, n_inside0), bases, (seeds, e_seeds, h_seeds, g_seeds, n_seeds))
            outside(n, side, lanes, (weights, e_weights, h_weights, g_weights, n_weights), (inside0, e_inside0, h_inside0, g_inside0, n_inside0), (outside0, e_outside0, h_outside0, g_outside0, n_outside0), (seeds, e_seeds, h_seeds, g_seeds, n_seeds), splat(scores, 1.0))
            flatten((weights, e_weights, h_weights, g_weights, n_weights), n * side)
            unpack(weights, group, order, n, out, bases)
