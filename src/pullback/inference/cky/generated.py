"""Generated from rules.py by `python -m pullback.inference.engine.rules`: do not edit.

The loops of the recursion for examples side by side in SIMD lanes, and the kernels of all operations.
"""

# ruff: noqa
from __future__ import annotations

import math

import numpy as np

from pullback.inference.front.checks import INFEASIBLE, INFINITE, NAN, OK
from pullback.inference.front.modes import Mode
from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.vectors import load_wide, narrow, splat_wide, widen
from pullback.inference._numba.lanes import larger, load, splat, splat_index, store, store_index, where_larger
from pullback.inference.engine.rules.batch import OUT_OF_RANGE
from pullback.inference.engine.rules.choices import choose, choose_log, choose_scaled, uniform
from pullback.inference.engine.rules.lanewise import (
    expect, finish, finish_scaled, flatten, flatten_tangents, lane_scratch, limit_of, normalise, pack_direction, seed,
    seed_scaled, seed_tangent, weigh,
)
from pullback.inference.engine.rules.logs import (
    OUT, OUT_TANGENT, TANGENT, VALUE, log_sum, mean_tangent, plus_wide, push, push_tangent, put_wide, wide_of,
)
from pullback.inference.engine.rules.numbers import at, constant, plus, put, times, times_plus, value_of
from pullback.inference.engine.rules.packing import clear, clear_all, lanes_of, pack, pitch_of, scale, unpack
from pullback.inference._numba.scratch import carve
from pullback.inference.cky.scaling import centre, to_scaled, to_weights

OPTIONS = ()
UPPER = True
CHARTS = {
    "argmax": 4, "marginals": 3, "product": 2 * 3,
    "marginals_scaled": 2 * 3, "product_scaled": 3 * 3, "logs": 13,
}
LINES = 4


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
def inside_logs(n, side, lanes, scores, inside0, sum0):
    """Fill the logarithms of the inside values."""
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n):
        put_wide(inside0[VALUE], j * row + (j + 1) * lanes, wide_of(load(scores, j * across + j * lanes), scores))
        for i in range(j - 1, -1, -1):
            split = log_sum(inside0, i * row + (i + 1) * lanes, lanes, inside0, (i + 1) * row + (j + 1) * lanes, row, j - i, sum0, i * row + (j + 1) * lanes, scores)
            span = plus_wide(split, wide_of(load(scores, i * across + j * lanes), scores), scores)
            put_wide(inside0[VALUE], i * row + (j + 1) * lanes, span)


@called
def tangents(n, side, lanes, scores, direction, surprise, inside0, sum0):
    """Fill the tangents of these along a direction, or the entropies."""
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n):
        store(inside0[TANGENT], j * row + (j + 1) * lanes, widen(load(direction, j * across + j * lanes)))
        for i in range(j - 1, -1, -1):
            split = mean_tangent(inside0, i * row + (i + 1) * lanes, lanes, inside0, (i + 1) * row + (j + 1) * lanes, row, j - i, sum0, i * row + (j + 1) * lanes, surprise, scores)
            store(sum0[2], i * row + (j + 1) * lanes, split)
            span = split + widen(load(direction, i * across + j * lanes))
            store(inside0[TANGENT], i * row + (j + 1) * lanes, span)


@called
def outside_logs(n, side, lanes, scores, inside0, sum0):
    """Fill the probabilities of all items, from 1 at the goals; those of parts replace the scores."""
    row, across = pitch_of(n) * lanes, side * lanes
    for i in range(n):
        for j in range(n - 1, i, -1):
            out_span = load_wide(inside0[OUT], i * row + (j + 1) * lanes, scores)
            store(scores, i * across + j * lanes, narrow(out_span, scores))
            out_split = out_span
            push(inside0, i * row + (i + 1) * lanes, lanes, inside0, (i + 1) * row + (j + 1) * lanes, row, j - i, sum0, i * row + (j + 1) * lanes, out_split, scores)
        j = i
        out_span = load_wide(inside0[OUT], i * row + (j + 1) * lanes, scores)
        store(scores, i * across + i * lanes, narrow(out_span, scores))


@called
def outside_tangents(n, side, lanes, scores, direction, surprise, inside0, sum0):
    """The same with tangents: those of the parts' probabilities replace the scores."""
    row, across = pitch_of(n) * lanes, side * lanes
    for i in range(n):
        for j in range(n - 1, i, -1):
            out_span = load_wide(inside0[OUT], i * row + (j + 1) * lanes, scores)
            moved_span = load_wide(inside0[OUT_TANGENT], i * row + (j + 1) * lanes, scores)
            store(scores, i * across + j * lanes, narrow(moved_span, scores))
            out_split = out_span
            moved_split = moved_span
            own = load_wide(sum0[2], i * row + (j + 1) * lanes, scores)
            push_tangent(inside0, i * row + (i + 1) * lanes, lanes, inside0, (i + 1) * row + (j + 1) * lanes, row, j - i, sum0, i * row + (j + 1) * lanes, out_split, moved_split, own, surprise, scores)
        j = i
        out_span = load_wide(inside0[OUT], i * row + (j + 1) * lanes, scores)
        moved_span = load_wide(inside0[OUT_TANGENT], i * row + (j + 1) * lanes, scores)
        store(scores, i * across + i * lanes, narrow(moved_span, scores))


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


@called
def draw_logs(size, n, lanes, lane, inside0, sum0, seed, stack, z, base, side):
    """Draw a structure of a lane."""
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
            k = i + choose_log(inside0, i * row + (i + 1) * lanes + lane, lanes, inside0, (i + 1) * row + (j + 1) * lanes + lane, row, j - i, sum0, i * row + (j + 1) * lanes + lane, u)
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
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    inside0, at = carve(work, at, square, np.float64)
    choice0, at = carve(work, at, square, np.int16)
    lane_lengths, codes, _, _, _, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells = z.reshape(-1), side * side
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        best(n, side, lanes, weights, inside0, choice0)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if codes[lane] > 0:
                status[example] = INFINITE if codes[lane] == 1 else NAN
            elif size > 0 and inside0[goal_of(size, n, lanes) + lane] == -np.inf:
                status[example] = INFEASIBLE
            elif size > 0:
                follow(size, n, lanes, lane, choice0, stack, flat, example * cells, side)


@no_alloc_kernel
def marginals(worker, workers, scores, lengths, order, scratch, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        peak = inside(n, side, lanes, weights, inside0, splat(scores, 1.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
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
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    d_weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    d_inside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        pack_direction(direction, n, UPPER, order, group, weights, 0.0, d_weights, bases)
        centre(d_weights, weights, 0.0, n, side, lane_lengths)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        peak = inside(n, side, lanes, (weights, d_weights), (inside0, d_inside0), splat(scores, 1.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        seed(lane_lengths, n, inside0, bases, seeds)
        seed_tangent(lane_lengths, n, d_inside0, bases, seeds, d_seeds)
        outer = outside(
            n, side, lanes, (weights, d_weights), (inside0, d_inside0), (outside0, d_outside0), (seeds, d_seeds), splat(scores, 1.0)
        )
        store(peaks, 0, peak * outer)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside0, bases, log_z, status)
        scale(d_weights, n, side, lane_lengths, factor, peaks)
        unpack(d_weights, group, order, n, out, bases)


@no_alloc_kernel
def marginals_scaled(worker, workers, scores, lengths, order, scratch, like, mu, log_z, status):
    """The same with an exponent for each number, integers of the dtype of `like`."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    e_weights, at = carve(work, at, (largest * side + 1) * lanes, whole)
    inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    e_outside0, at = carve(work, at, square, whole)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, lane_lengths, log_scale, factor)
        inside(n, side, lanes, (weights, e_weights), (inside0, e_inside0), splat(scores, 0.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        finish_scaled(group, order, codes, lane_lengths, log_scale, (inside0, e_inside0), bases, log_z, status)
        if mu.size > 0:
            seed_scaled(lane_lengths, n, (inside0, e_inside0), bases, (seeds, e_seeds))
            outside(
                n, side, lanes, (weights, e_weights), (inside0, e_inside0), (outside0, e_outside0), (seeds, e_seeds),
                splat(scores, 0.0),
            )
            flatten((weights, e_weights), n * side)
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product_scaled(worker, workers, scores, lengths, order, scratch, like, direction, out, log_z, status):
    """The same with an exponent for each number."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    d_weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    e_weights, at = carve(work, at, (largest * side + 1) * lanes, whole)
    inside0, at = carve(work, at, square, dtype)
    outside0, at = carve(work, at, square, dtype)
    d_inside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    e_outside0, at = carve(work, at, square, whole)
    seeds, at = carve(work, at, line, dtype)
    d_seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, _ = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, lane_lengths, log_scale, factor)
        pack_direction(direction, n, UPPER, order, group, weights, 0.0, d_weights, bases)
        centre(d_weights, weights, 0.0, n, side, lane_lengths)
        normalise(d_weights, n, side, UPPER, peaks, factor)
        weigh(d_weights, weights, n, side, UPPER)
        inside(n, side, lanes, (weights, d_weights, e_weights), (inside0, d_inside0, e_inside0), splat(scores, 0.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        whole_goal = (inside0, d_inside0, e_inside0)
        finish_scaled(group, order, codes, lane_lengths, log_scale, whole_goal, bases, log_z, status)
        seed_scaled(lane_lengths, n, whole_goal, bases, (seeds, d_seeds, e_seeds))
        outside(
            n, side, lanes, (weights, d_weights, e_weights), (inside0, d_inside0, e_inside0), (outside0, d_outside0, e_outside0),
            (seeds, d_seeds, e_seeds), splat(scores, 0.0),
        )
        flatten_tangents((weights, d_weights, e_weights), n * side)
        scale(d_weights, n, side, lane_lengths, factor, peaks)
        unpack(d_weights, group, order, n, out, bases)


@no_alloc_kernel
def sample(worker, workers, scores, lengths, order, scratch, seeds, z, status):
    """Draw structures; an example whose path meets a value too small gets OUT_OF_RANGE."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    inside0, at = carve(work, at, square, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells, limit = z.reshape(-1), side * side, limit_of(scores)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        store(peaks, 0, inside(n, side, lanes, weights, inside0, splat(scores, 1.0)))
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if codes[lane] > 0:
                status[example] = INFINITE if codes[lane] == 1 else NAN
            elif size > 0:
                least = peaks[lane] / limit
                found = peaks[lane] <= limit and inside0[goal_of(size, n, lanes) + lane] >= least and draw(
                    size, n, lanes, lane, inside0, least, seeds[example], stack, flat, example * cells, side
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def sample_scaled(worker, workers, scores, lengths, order, scratch, like, seeds, z, log_z, status):
    """The same with an exponent for each number."""
    side, lanes, dtype, whole = scores.shape[-1], lanes_of(scores), scores.dtype, like.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    weights, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    e_weights, at = carve(work, at, (largest * side + 1) * lanes, whole)
    inside0, at = carve(work, at, square, dtype)
    e_inside0, at = carve(work, at, square, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells = z.reshape(-1), side * side
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, lane_lengths, log_scale, factor)
        inside(n, side, lanes, (weights, e_weights), (inside0, e_inside0), splat(scores, 0.0))
        for lane in range(lanes):
            bases[lane] = goal_of(int(lane_lengths[lane]), n, lanes) + lane
        finish_scaled(group, order, codes, lane_lengths, log_scale, (inside0, e_inside0), bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                draw_scaled(
                    size, n, lanes, lane, (inside0, e_inside0), seeds[example], stack, flat, example * cells, side
                )


@no_alloc_kernel
def in_logs(worker, workers, scores, lengths, order, scratch, mode, direction, seeds, out, value, status):
    """All sums in logarithms, for scores of any size: values (log-partitions or entropies), and what `mode` says of parts."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    surprise, tangent = mode >= Mode.ENTROPY, mode >= Mode.TANGENT
    down = mode == Mode.MARGINALS or mode == Mode.TANGENT or mode == Mode.ENTROPY_TANGENT
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    packed, at = carve(work, at, (largest * side + 1) * lanes, dtype)
    along, at = carve(work, at, (largest * side + 1) * lanes * tangent, dtype)
    inside0_high, at = carve(work, at, square, np.float64)
    inside0_middle, at = carve(work, at, square, np.float64)
    inside0_low, at = carve(work, at, square, np.float64)
    inside0_tangent, at = carve(work, at, square * tangent, np.float64)
    inside0_out, at = carve(work, at, square * down, np.float64)
    inside0_moved, at = carve(work, at, square * tangent * down, np.float64)
    inside0 = ((inside0_high, inside0_middle, inside0_low), inside0_tangent, inside0_out, inside0_moved)
    sum0_high, at = carve(work, at, square, np.float64)
    sum0_middle, at = carve(work, at, square, np.float64)
    sum0_low, at = carve(work, at, square, np.float64)
    sum0_tangent, at = carve(work, at, square * tangent, np.float64)
    sum0_inverse, at = carve(work, at, square, dtype)
    sum0 = ((sum0_high, sum0_middle, sum0_low), sum0_inverse, sum0_tangent)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    flat, cells = out.reshape(-1), side * side
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, packed, lane_lengths, bases, codes)
        inside_logs(n, side, lanes, packed, inside0, sum0)
        if tangent:
            if surprise:
                clear_all(along, n * side * lanes)
            else:
                pack_direction(direction, n, UPPER, order, group, packed, -np.inf, along, bases)
                centre(along, packed, -np.inf, n, side, lane_lengths)
                normalise(along, n, side, UPPER, peaks, factor)
            tangents(n, side, lanes, packed, along, surprise, inside0, sum0)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            place = goal_of(size, n, lanes) + lane
            log_z = 0.0
            if size > 0:
                log_z = inside0[VALUE][0][place] + (inside0[VALUE][1][place] + inside0[VALUE][2][place])
            status[example] = OK if log_z > -np.inf else INFEASIBLE
            if codes[lane] > 0:
                status[example] = INFINITE if codes[lane] == 1 else NAN
            value[example] = max(inside0[TANGENT][place], 0.0) if surprise and size > 0 else 0.0 if surprise else log_z
            if mode == Mode.SAMPLE:
                clear(out, example, 0)
                if status[example] == OK and size > 0:
                    draw_logs(
                        size, n, lanes, lane, inside0, sum0, seeds[example], stack, flat, example * cells, side
                    )
        if down:
            square, line = n * pitch_of(n) * lanes, (n + 1) * lanes
            _clear(inside0, square, tangent)
            for lane in range(lanes):
                size = int(lane_lengths[lane])
                place = goal_of(size, n, lanes) + lane
                if size > 0 and inside0[VALUE][0][place] > -np.inf:
                    inside0[OUT][place] = 1.0
            if tangent:
                outside_tangents(n, side, lanes, packed, along, surprise, inside0, sum0)
            else:
                outside_logs(n, side, lanes, packed, inside0, sum0)
            if mode == Mode.TANGENT:
                scale(packed, n, side, lane_lengths, factor, peaks)
            unpack(packed, group, order, n, out, bases)


@called
def _clear(chart, count, tangent):
    """Zeros for the probabilities of a chart, and their tangents."""
    clear_all(chart[OUT], count)
    if tangent:
        clear_all(chart[OUT_TANGENT], count)
