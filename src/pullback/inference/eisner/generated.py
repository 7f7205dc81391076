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
from pullback.inference.eisner.scaling import to_weights

OPTIONS = ("multiroot",)
UPPER = False
CHARTS = {
    "argmax": 8,
    "marginals": 5,
    "product": 10,
    "sample": 5,
    "marginals_scaled": 10,
    "product_scaled": 15,
    "sample_scaled": 10,
    "marginals_far": 20,
    "product_far": 25,
    "sample_far": 20,
    "entropies_far": 25,
}
LINES = 32


@called
def inside(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, peak):
    """Fill the inside values; returns the largest value, at least `peak`."""
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n):
        put(inside0, j * row + (j + 1) * lanes, constant(weights, 1.0))
        put(inside0, j * row + j * lanes, constant(weights, 1.0))
    for j in range(-(-n % 2), n, 2):
        for i in range(j, -1, -1):
            # between(i, j): right(i, k) left(k + 1, j) over k = i ... j - 1
            # right(i, j): right_arc(i, k) right(k, j) over k = i + 1 ... j
            # left(i, j): left(i, k) left_arc(k, j) over k = i ... j - 1
            between0 = constant(weights, 0.0)
            between1 = constant(weights, 0.0)
            for k in range(i, j):
                between0 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, j * row + (k + 1) * lanes), between0)
                between1 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (j + 1) * row + (k + 1) * lanes), between1)
            right0 = constant(weights, 0.0)
            right1 = constant(weights, 0.0)
            left0 = constant(weights, 0.0)
            left1 = constant(weights, 0.0)
            for k in range(i + 1, j):
                right0 = times_plus(at(inside1, i * row + (k + 1) * lanes), at(inside0, k * row + (j + 1) * lanes), right0)
                right1 = times_plus(at(inside1, i * row + (k + 1) * lanes), at(inside0, k * row + (j + 2) * lanes), right1)
                left0 = times_plus(at(inside0, k * row + i * lanes), at(inside1, j * row + k * lanes), left0)
                left1 = times_plus(at(inside0, k * row + i * lanes), at(inside1, (j + 1) * row + k * lanes), left1)
            if i < j:
                peak = larger(value_of(between0), peak)
                right_arc0 = times(between0, at(weights, i * across + j * lanes))
                put(inside1, i * row + (j + 1) * lanes, right_arc0)
                left_arc0 = times(between0, at(weights, j * across + i * lanes))
                put(inside1, j * row + i * lanes, left_arc0)
                right0 = plus(right0, right_arc0)
                peak = larger(value_of(right0), peak)
                put(inside0, i * row + (j + 1) * lanes, right0)
                left0 = plus(left0, left_arc0)
                peak = larger(value_of(left0), peak)
                put(inside0, j * row + i * lanes, left0)
            if i < j + 1:
                for k in range(max(i, j), j + 1):
                    between1 = times_plus(at(inside0, i * row + (k + 1) * lanes), at(inside0, (j + 1) * row + (k + 1) * lanes), between1)
                peak = larger(value_of(between1), peak)
                right_arc1 = times(between1, at(weights, i * across + (j + 1) * lanes))
                put(inside1, i * row + (j + 2) * lanes, right_arc1)
                left_arc1 = times(between1, at(weights, (j + 1) * across + i * lanes))
                put(inside1, (j + 1) * row + i * lanes, left_arc1)
                for k in range(max(i + 1, j), j + 1):
                    right1 = times_plus(at(inside1, i * row + (k + 1) * lanes), at(inside0, k * row + (j + 2) * lanes), right1)
                right1 = plus(right1, right_arc1)
                peak = larger(value_of(right1), peak)
                put(inside0, i * row + (j + 2) * lanes, right1)
                for k in range(max(i + 1, j), j + 1):
                    left1 = times_plus(at(inside0, k * row + i * lanes), at(inside1, (j + 1) * row + k * lanes), left1)
                left1 = plus(left1, left_arc1)
                peak = larger(value_of(left1), peak)
                put(inside0, (j + 1) * row + i * lanes, left1)
    put(inside_prefix, 0, constant(weights, 1.0))
    for j in range(n):
        # starts(j): prefix(i) left(i, j) over i = 0 ... j
        # prefix(j + 1): root_arc(i) right(i, j) over i = 0 ... j
        starts = constant(weights, 0.0)
        for i in range(j + 1 if multiroot else 1):
            starts = times_plus(at(inside_prefix, i * lanes), at(inside0, j * row + i * lanes), starts)
        prefix = constant(weights, 0.0)
        for i in range(j):
            prefix = times_plus(at(inside_root_arc, i * lanes), at(inside0, i * row + (j + 1) * lanes), prefix)
        peak = larger(value_of(starts), peak)
        root_arc = times(starts, at(weights, j * across + j * lanes))
        put(inside_root_arc, j * lanes, root_arc)
        prefix = plus(prefix, root_arc)
        peak = larger(value_of(prefix), peak)
        put(inside_prefix, (j + 1) * lanes, prefix)
    return peak


@called
def outside(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, outside0, outside1, outside_prefix, outside_starts, seeds, peak):
    """Fill the outside values over Z, from 1/Z at each example's size in `seeds`; marginals replace the weights.

    Returns the largest value, at least `peak`.
    """
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n - 1, -1, -1):
        out_prefix = at(seeds, (j + 1) * lanes)
        out_root_arc = constant(weights, 0.0)
        out_starts = constant(weights, 0.0)
        if multiroot:
            for t in range(j + 1, n):
                out_prefix = times_plus(at(outside_starts, t * lanes), at(inside0, t * row + (j + 1) * lanes), out_prefix)
        for t in range(j + 1, n):
            out_root_arc = times_plus(at(outside_prefix, (t + 1) * lanes), at(inside0, j * row + (t + 1) * lanes), out_root_arc)
        peak = larger(value_of(out_prefix), peak)
        put(outside_prefix, (j + 1) * lanes, out_prefix)
        out_root_arc = plus(out_root_arc, out_prefix)
        peak = larger(value_of(out_root_arc), peak)
        root_arc_weight = at(weights, j * across + j * lanes)
        put(weights, j * across + j * lanes, times(out_root_arc, at(inside_root_arc, j * lanes)))
        out_starts = times_plus(out_root_arc, root_arc_weight, out_starts)
        peak = larger(value_of(out_starts), peak)
        put(outside_starts, j * lanes, out_starts)
    for i in range(0, n, 2):
        for j in range(n - 1, i, -1):
            out_left0 = constant(weights, 0.0)
            out_right0 = constant(weights, 0.0)
            out_left_arc0 = constant(weights, 0.0)
            out_right_arc0 = constant(weights, 0.0)
            out_between0 = constant(weights, 0.0)
            out_left1 = constant(weights, 0.0)
            out_right1 = constant(weights, 0.0)
            out_left_arc1 = constant(weights, 0.0)
            out_right_arc1 = constant(weights, 0.0)
            out_between1 = constant(weights, 0.0)
            for t in range(i):
                out_left0 = times_plus(at(outside1, t * row + (j + 1) * lanes), at(inside0, t * row + i * lanes), out_left0)
                out_right0 = times_plus(at(outside0, t * row + (j + 1) * lanes), at(inside1, t * row + (i + 1) * lanes), out_right0)
                out_left_arc0 = times_plus(at(outside0, j * row + t * lanes), at(inside0, i * row + t * lanes), out_left_arc0)
                out_left1 = times_plus(at(outside1, t * row + (j + 1) * lanes), at(inside0, t * row + (i + 1) * lanes), out_left1)
                out_right1 = times_plus(at(outside0, t * row + (j + 1) * lanes), at(inside1, t * row + (i + 2) * lanes), out_right1)
                out_left_arc1 = times_plus(at(outside0, j * row + t * lanes), at(inside0, (i + 1) * row + t * lanes), out_left_arc1)
            for t in range(j + 1, n):
                out_left0 = times_plus(at(outside0, t * row + i * lanes), at(inside1, t * row + j * lanes), out_left0)
                out_right0 = times_plus(at(outside1, i * row + (t + 1) * lanes), at(inside0, t * row + (j + 1) * lanes), out_right0)
                out_right_arc0 = times_plus(at(outside0, i * row + (t + 1) * lanes), at(inside0, j * row + (t + 1) * lanes), out_right_arc0)
                out_left1 = times_plus(at(outside0, t * row + (i + 1) * lanes), at(inside1, t * row + j * lanes), out_left1)
                out_right1 = times_plus(at(outside1, (i + 1) * row + (t + 1) * lanes), at(inside0, t * row + (j + 1) * lanes), out_right1)
                out_right_arc1 = times_plus(at(outside0, (i + 1) * row + (t + 1) * lanes), at(inside0, j * row + (t + 1) * lanes), out_right_arc1)
            if i < j:
                if multiroot or i == 0:
                    out_left0 = times_plus(at(outside_starts, j * lanes), at(inside_prefix, i * lanes), out_left0)
                peak = larger(value_of(out_left0), peak)
                put(outside0, j * row + i * lanes, out_left0)
                out_right0 = times_plus(at(outside_prefix, (j + 1) * lanes), at(inside_root_arc, i * lanes), out_right0)
                peak = larger(value_of(out_right0), peak)
                put(outside0, i * row + (j + 1) * lanes, out_right0)
                out_left_arc0 = plus(out_left_arc0, out_left0)
                peak = larger(value_of(out_left_arc0), peak)
                left_arc0_weight = at(weights, j * across + i * lanes)
                put(weights, j * across + i * lanes, times(out_left_arc0, at(inside1, j * row + i * lanes)))
                out_right_arc0 = plus(out_right_arc0, out_right0)
                peak = larger(value_of(out_right_arc0), peak)
                right_arc0_weight = at(weights, i * across + j * lanes)
                put(weights, i * across + j * lanes, times(out_right_arc0, at(inside1, i * row + (j + 1) * lanes)))
                out_between0 = times_plus(out_right_arc0, right_arc0_weight, out_between0)
                out_between0 = times_plus(out_left_arc0, left_arc0_weight, out_between0)
                peak = larger(value_of(out_between0), peak)
                put(outside1, i * row + (j + 1) * lanes, out_between0)
            if i + 1 < j:
                for t in range(i, i + 1):
                    out_left1 = times_plus(at(outside1, t * row + (j + 1) * lanes), at(inside0, t * row + (i + 1) * lanes), out_left1)
                if multiroot:
                    out_left1 = times_plus(at(outside_starts, j * lanes), at(inside_prefix, (i + 1) * lanes), out_left1)
                peak = larger(value_of(out_left1), peak)
                put(outside0, j * row + (i + 1) * lanes, out_left1)
                for t in range(i, i + 1):
                    out_right1 = times_plus(at(outside0, t * row + (j + 1) * lanes), at(inside1, t * row + (i + 2) * lanes), out_right1)
                out_right1 = times_plus(at(outside_prefix, (j + 1) * lanes), at(inside_root_arc, (i + 1) * lanes), out_right1)
                peak = larger(value_of(out_right1), peak)
                put(outside0, (i + 1) * row + (j + 1) * lanes, out_right1)
                for t in range(i, i + 1):
                    out_left_arc1 = times_plus(at(outside0, j * row + t * lanes), at(inside0, (i + 1) * row + t * lanes), out_left_arc1)
                out_left_arc1 = plus(out_left_arc1, out_left1)
                peak = larger(value_of(out_left_arc1), peak)
                left_arc1_weight = at(weights, j * across + (i + 1) * lanes)
                put(weights, j * across + (i + 1) * lanes, times(out_left_arc1, at(inside1, j * row + (i + 1) * lanes)))
                out_right_arc1 = plus(out_right_arc1, out_right1)
                peak = larger(value_of(out_right_arc1), peak)
                right_arc1_weight = at(weights, (i + 1) * across + j * lanes)
                put(weights, (i + 1) * across + j * lanes, times(out_right_arc1, at(inside1, (i + 1) * row + (j + 1) * lanes)))
                out_between1 = times_plus(out_right_arc1, right_arc1_weight, out_between1)
                out_between1 = times_plus(out_left_arc1, left_arc1_weight, out_between1)
                peak = larger(value_of(out_between1), peak)
                put(outside1, (i + 1) * row + (j + 1) * lanes, out_between1)
    return peak


@called
def best(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, choice0, choice1, choice2, choice3, choice4):
    """Fill the largest values, and which term each comes from: the first, if several are largest."""
    row, across = pitch_of(n) * lanes, side * lanes
    for j in range(n):
        store(inside0, j * row + (j + 1) * lanes, splat(weights, 0.0))
        store(inside0, j * row + j * lanes, splat(weights, 0.0))
    for j in range(-(-n % 2), n, 2):
        for i in range(j, -1, -1):
            # between(i, j): right(i, k) left(k + 1, j) over k = i ... j - 1
            # right(i, j): right_arc(i, k) right(k, j) over k = i + 1 ... j
            # left(i, j): left(i, k) left_arc(k, j) over k = i ... j - 1
            between0 = splat(weights, -np.inf)
            between0_at = splat_index(between0, i)
            between1 = splat(weights, -np.inf)
            between1_at = splat_index(between1, i)
            for k in range(i, j):
                x = load(inside0, i * row + (k + 1) * lanes) + load(inside0, j * row + (k + 1) * lanes)
                between0_at = where_larger(x, between0, splat_index(between0, k), between0_at)
                between0 = larger(x, between0)
                x = load(inside0, i * row + (k + 1) * lanes) + load(inside0, (j + 1) * row + (k + 1) * lanes)
                between1_at = where_larger(x, between1, splat_index(between1, k), between1_at)
                between1 = larger(x, between1)
            right0 = splat(weights, -np.inf)
            right0_at = splat_index(right0, i + 1)
            right1 = splat(weights, -np.inf)
            right1_at = splat_index(right1, i + 1)
            left0 = splat(weights, -np.inf)
            left0_at = splat_index(left0, i)
            left1 = splat(weights, -np.inf)
            left1_at = splat_index(left1, i)
            for k in range(i + 1, j):
                x = load(inside1, i * row + (k + 1) * lanes) + load(inside0, k * row + (j + 1) * lanes)
                right0_at = where_larger(x, right0, splat_index(right0, k), right0_at)
                right0 = larger(x, right0)
                x = load(inside1, i * row + (k + 1) * lanes) + load(inside0, k * row + (j + 2) * lanes)
                right1_at = where_larger(x, right1, splat_index(right1, k), right1_at)
                right1 = larger(x, right1)
                x = load(inside0, k * row + i * lanes) + load(inside1, j * row + k * lanes)
                left0_at = where_larger(x, left0, splat_index(left0, k), left0_at)
                left0 = larger(x, left0)
                x = load(inside0, k * row + i * lanes) + load(inside1, (j + 1) * row + k * lanes)
                left1_at = where_larger(x, left1, splat_index(left1, k), left1_at)
                left1 = larger(x, left1)
            if i < j:
                store_index(choice0, i * row + (j + 1) * lanes, between0_at)
                right_arc0 = between0 + load(weights, i * across + j * lanes)
                store(inside1, i * row + (j + 1) * lanes, right_arc0)
                left_arc0 = between0 + load(weights, j * across + i * lanes)
                store(inside1, j * row + i * lanes, left_arc0)
                right0_at = where_larger(right_arc0, right0, splat_index(right0, j), right0_at)
                right0 = larger(right_arc0, right0)
                store_index(choice1, i * row + (j + 1) * lanes, right0_at)
                store(inside0, i * row + (j + 1) * lanes, right0)
                left0_at = where_larger(left0, left_arc0, left0_at, splat_index(left0, i))
                left0 = larger(left_arc0, left0)
                store_index(choice2, j * row + i * lanes, left0_at)
                store(inside0, j * row + i * lanes, left0)
            if i < j + 1:
                for k in range(max(i, j), j + 1):
                    x = load(inside0, i * row + (k + 1) * lanes) + load(inside0, (j + 1) * row + (k + 1) * lanes)
                    between1_at = where_larger(x, between1, splat_index(between1, k), between1_at)
                    between1 = larger(x, between1)
                store_index(choice0, i * row + (j + 2) * lanes, between1_at)
                right_arc1 = between1 + load(weights, i * across + (j + 1) * lanes)
                store(inside1, i * row + (j + 2) * lanes, right_arc1)
                left_arc1 = between1 + load(weights, (j + 1) * across + i * lanes)
                store(inside1, (j + 1) * row + i * lanes, left_arc1)
                for k in range(max(i + 1, j), j + 1):
                    x = load(inside1, i * row + (k + 1) * lanes) + load(inside0, k * row + (j + 2) * lanes)
                    right1_at = where_larger(x, right1, splat_index(right1, k), right1_at)
                    right1 = larger(x, right1)
                right1_at = where_larger(right_arc1, right1, splat_index(right1, j + 1), right1_at)
                right1 = larger(right_arc1, right1)
                store_index(choice1, i * row + (j + 2) * lanes, right1_at)
                store(inside0, i * row + (j + 2) * lanes, right1)
                for k in range(max(i + 1, j), j + 1):
                    x = load(inside0, k * row + i * lanes) + load(inside1, (j + 1) * row + k * lanes)
                    left1_at = where_larger(x, left1, splat_index(left1, k), left1_at)
                    left1 = larger(x, left1)
                left1_at = where_larger(left1, left_arc1, left1_at, splat_index(left1, i))
                left1 = larger(left_arc1, left1)
                store_index(choice2, (j + 1) * row + i * lanes, left1_at)
                store(inside0, (j + 1) * row + i * lanes, left1)
    store(inside_prefix, 0, splat(weights, 0.0))
    for j in range(n):
        # starts(j): prefix(i) left(i, j) over i = 0 ... j
        # prefix(j + 1): root_arc(i) right(i, j) over i = 0 ... j
        starts = splat(weights, -np.inf)
        starts_at = splat_index(starts, 0)
        for i in range(j + 1 if multiroot else 1):
            x = load(inside_prefix, i * lanes) + load(inside0, j * row + i * lanes)
            starts_at = where_larger(x, starts, splat_index(starts, i), starts_at)
            starts = larger(x, starts)
        prefix = splat(weights, -np.inf)
        prefix_at = splat_index(prefix, 0)
        for i in range(j):
            x = load(inside_root_arc, i * lanes) + load(inside0, i * row + (j + 1) * lanes)
            prefix_at = where_larger(x, prefix, splat_index(prefix, i), prefix_at)
            prefix = larger(x, prefix)
        store_index(choice3, j * lanes, starts_at)
        root_arc = starts + load(weights, j * across + j * lanes)
        store(inside_root_arc, j * lanes, root_arc)
        prefix_at = where_larger(root_arc, prefix, splat_index(prefix, j), prefix_at)
        prefix = larger(root_arc, prefix)
        store_index(choice4, (j + 1) * lanes, prefix_at)
        store(inside_prefix, (j + 1) * lanes, prefix)


@called
def goal_of(size, n, lanes):
    """Where the value of an example of some size begins."""
    return size * lanes


@called
def follow(size, n, lanes, lane, multiroot, choice0, choice1, choice2, choice3, choice4, stack, z, base, side):
    """Write the parts of the best structure of a lane."""
    row = pitch_of(n) * lanes
    stack[0, 0], stack[0, 1], stack[0, 2] = 5, 0, size
    height = 1
    while height > 0:
        height -= 1
        item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        if item == 0:  # right
            if i == j:
                continue
            k = np.int64(choice1[i * row + (j + 1) * lanes + lane])
            stack[height, 0], stack[height, 1], stack[height, 2] = 3, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, k, j
            height += 2
        elif item == 1:  # left
            if i == j:
                continue
            k = np.int64(choice2[j * row + i * lanes + lane])
            stack[height, 0], stack[height, 1], stack[height, 2] = 1, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 4, k, j
            height += 2
        elif item == 2:  # between
            k = np.int64(choice0[i * row + (j + 1) * lanes + lane])
            stack[height, 0], stack[height, 1], stack[height, 2] = 0, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 1, k + 1, j
            height += 2
        elif item == 3:  # right_arc
            z[base + i * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 2, i, j
            height += 1
        elif item == 4:  # left_arc
            z[base + j * side + i] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 2, i, j
            height += 1
        elif item == 5:  # prefix
            if j == 0:
                continue
            j -= 1
            i = np.int64(choice4[(j + 1) * lanes + lane])
            stack[height, 0], stack[height, 1], stack[height, 2] = 7, 0, i
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, i, j
            height += 2
        elif item == 6:  # starts
            i = np.int64(choice3[j * lanes + lane])
            stack[height, 0], stack[height, 1], stack[height, 2] = 5, 0, i
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 1, i, j
            height += 2
        elif item == 7:  # root_arc
            z[base + j * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 6, 0, j
            height += 1


@called
def draw(size, n, lanes, lane, multiroot, inside0, inside1, inside_prefix, inside_root_arc, least, seed, stack, z, base, side):
    """Draw a structure of a lane; False where a value on the way is below `least`, and too small to trust."""
    row = pitch_of(n) * lanes
    stack[0, 0], stack[0, 1], stack[0, 2] = 5, 0, size
    height = 1
    drawn = 0
    while height > 0:
        height -= 1
        item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        if item == 0:  # right
            if i == j:
                continue
            if not inside0[i * row + (j + 1) * lanes + lane] >= least:
                return False
            u, drawn = uniform(seed, drawn)
            k = i + 1 + choose(inside1, i * row + (i + 2) * lanes + lane, lanes, inside0, (i + 1) * row + (j + 1) * lanes + lane, row, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 3, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, k, j
            height += 2
        elif item == 1:  # left
            if i == j:
                continue
            if not inside0[j * row + i * lanes + lane] >= least:
                return False
            u, drawn = uniform(seed, drawn)
            k = i + choose(inside0, i * row + i * lanes + lane, row, inside1, j * row + i * lanes + lane, lanes, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 1, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 4, k, j
            height += 2
        elif item == 2:  # between
            u, drawn = uniform(seed, drawn)
            k = i + choose(inside0, i * row + (i + 1) * lanes + lane, lanes, inside0, j * row + (i + 1) * lanes + lane, lanes, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 0, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 1, k + 1, j
            height += 2
        elif item == 3:  # right_arc
            if not inside1[i * row + (j + 1) * lanes + lane] >= least:
                return False
            z[base + i * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 2, i, j
            height += 1
        elif item == 4:  # left_arc
            if not inside1[j * row + i * lanes + lane] >= least:
                return False
            z[base + j * side + i] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 2, i, j
            height += 1
        elif item == 5:  # prefix
            if j == 0:
                continue
            j -= 1
            if not inside_prefix[(j + 1) * lanes + lane] >= least:
                return False
            u, drawn = uniform(seed, drawn)
            i = choose(inside_root_arc, 0 + lane, lanes, inside0, (j + 1) * lanes + lane, row, j + 1, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 7, 0, i
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, i, j
            height += 2
        elif item == 6:  # starts
            u, drawn = uniform(seed, drawn)
            i = choose(inside_prefix, 0 + lane, lanes, inside0, j * row + lane, lanes, j + 1 if multiroot else 1, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 5, 0, i
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 1, i, j
            height += 2
        elif item == 7:  # root_arc
            if not inside_root_arc[j * lanes + lane] >= least:
                return False
            z[base + j * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 6, 0, j
            height += 1
    return True


@called
def draw_scaled(size, n, lanes, lane, multiroot, inside0, inside1, inside_prefix, inside_root_arc, seed, stack, z, base, side):
    """Draw a structure of a lane from numbers with exponents."""
    row = pitch_of(n) * lanes
    stack[0, 0], stack[0, 1], stack[0, 2] = 5, 0, size
    height = 1
    drawn = 0
    while height > 0:
        height -= 1
        item, i, j = stack[height, 0], stack[height, 1], stack[height, 2]
        if item == 0:  # right
            if i == j:
                continue
            u, drawn = uniform(seed, drawn)
            k = i + 1 + choose_scaled(inside1, i * row + (i + 2) * lanes + lane, lanes, inside0, (i + 1) * row + (j + 1) * lanes + lane, row, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 3, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, k, j
            height += 2
        elif item == 1:  # left
            if i == j:
                continue
            u, drawn = uniform(seed, drawn)
            k = i + choose_scaled(inside0, i * row + i * lanes + lane, row, inside1, j * row + i * lanes + lane, lanes, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 1, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 4, k, j
            height += 2
        elif item == 2:  # between
            u, drawn = uniform(seed, drawn)
            k = i + choose_scaled(inside0, i * row + (i + 1) * lanes + lane, lanes, inside0, j * row + (i + 1) * lanes + lane, lanes, j - i, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 0, i, k
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 1, k + 1, j
            height += 2
        elif item == 3:  # right_arc
            z[base + i * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 2, i, j
            height += 1
        elif item == 4:  # left_arc
            z[base + j * side + i] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 2, i, j
            height += 1
        elif item == 5:  # prefix
            if j == 0:
                continue
            j -= 1
            u, drawn = uniform(seed, drawn)
            i = choose_scaled(inside_root_arc, 0 + lane, lanes, inside0, (j + 1) * lanes + lane, row, j + 1, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 7, 0, i
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 0, i, j
            height += 2
        elif item == 6:  # starts
            u, drawn = uniform(seed, drawn)
            i = choose_scaled(inside_prefix, 0 + lane, lanes, inside0, j * row + lane, lanes, j + 1 if multiroot else 1, u)
            stack[height, 0], stack[height, 1], stack[height, 2] = 5, 0, i
            stack[height + 1, 0], stack[height + 1, 1], stack[height + 1, 2] = 1, i, j
            height += 2
        elif item == 7:  # root_arc
            z[base + j * side + j] = 1.0
            stack[height, 0], stack[height, 1], stack[height, 2] = 6, 0, j
            height += 1
    return True


@no_alloc_kernel
def argmax(worker, workers, scores, lengths, order, multiroot, scratch, z, status):
    """Write the best structures of `[B, n, n]` scores as zeros and ones; a status other than OK leaves zeros."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, dtype)
    inside1, at = carve(work, at, square, dtype)
    inside_prefix, at = carve(work, at, line, dtype)
    inside_root_arc, at = carve(work, at, line, dtype)
    choice0, at = carve(work, at, square, np.int16)
    choice1, at = carve(work, at, square, np.int16)
    choice2, at = carve(work, at, square, np.int16)
    choice3, at = carve(work, at, line, np.int16)
    choice4, at = carve(work, at, line, np.int16)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        best(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, choice0, choice1, choice2, choice3, choice4)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            found = size == 0 or inside_prefix[goal_of(size, n, lanes) + lane] > -np.inf
            status[example] = status_of(codes[lane], found, INFEASIBLE)
            if status[example] == OK and size > 0:
                follow(size, n, lanes, lane, multiroot, choice0, choice1, choice2, choice3, choice4, stack, z.reshape(-1), example * side * side, side)


@no_alloc_kernel
def marginals(worker, workers, scores, lengths, order, multiroot, scratch, mu, log_z, status):
    """Marginals `[B, n, n]`, unless there is no room for them, and log-partitions."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, dtype)
    inside1, at = carve(work, at, square, dtype)
    inside_prefix, at = carve(work, at, line, dtype)
    inside_root_arc, at = carve(work, at, line, dtype)
    outside0, at = carve(work, at, square, dtype)
    outside1, at = carve(work, at, square, dtype)
    outside_prefix, at = carve(work, at, line, dtype)
    outside_starts, at = carve(work, at, line, dtype)
    seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        peak = inside(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, inside_prefix, bases, seeds)
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, outside0, outside1, outside_prefix, outside_starts, seeds, splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside_prefix, bases, log_z, status)
        if mu.size > 0:
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product(worker, workers, scores, lengths, order, multiroot, scratch, direction, out, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    d_inside1, at = carve(work, at, square, dtype)
    inside_prefix, at = carve(work, at, line, dtype)
    d_inside_prefix, at = carve(work, at, line, dtype)
    inside_root_arc, at = carve(work, at, line, dtype)
    d_inside_root_arc, at = carve(work, at, line, dtype)
    outside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    outside1, at = carve(work, at, square, dtype)
    d_outside1, at = carve(work, at, square, dtype)
    outside_prefix, at = carve(work, at, line, dtype)
    d_outside_prefix, at = carve(work, at, line, dtype)
    outside_starts, at = carve(work, at, line, dtype)
    d_outside_starts, at = carve(work, at, line, dtype)
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
        peak = inside(n, side, lanes, multiroot, (weights, d_weights), (inside0, d_inside0), (inside1, d_inside1), (inside_prefix, d_inside_prefix), (inside_root_arc, d_inside_root_arc), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside_prefix, d_inside_prefix), bases, (seeds, d_seeds))
        outer = outside(n, side, lanes, multiroot, (weights, d_weights), (inside0, d_inside0), (inside1, d_inside1), (inside_prefix, d_inside_prefix), (inside_root_arc, d_inside_root_arc), (outside0, d_outside0), (outside1, d_outside1), (outside_prefix, d_outside_prefix), (outside_starts, d_outside_starts), (seeds, d_seeds), splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside_prefix, bases, log_z, status)
        flatten((weights, d_weights), n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)


@no_alloc_kernel
def sample(worker, workers, scores, lengths, order, multiroot, scratch, streams, z, log_z, status):
    """Draw structures; an example whose path meets a value too small gets OUT_OF_RANGE."""
    side, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work, at = lengths[order[first]], scratch[worker], 0
    square, line, parts = largest * pitch_of(largest) * lanes, (largest + 1) * lanes, (largest * side + 1) * lanes
    weights, at = carve(work, at, parts, dtype)
    inside0, at = carve(work, at, square, dtype)
    inside1, at = carve(work, at, square, dtype)
    inside_prefix, at = carve(work, at, line, dtype)
    inside_root_arc, at = carve(work, at, line, dtype)
    outside0, at = carve(work, at, square, dtype)
    outside1, at = carve(work, at, square, dtype)
    outside_prefix, at = carve(work, at, line, dtype)
    outside_starts, at = carve(work, at, line, dtype)
    seeds, at = carve(work, at, line, dtype)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_weights(weights, n, side, lane_lengths, log_scale, peaks, factor)
        store(peaks, 0, inside(n, side, lanes, multiroot, weights, inside0, inside1, inside_prefix, inside_root_arc, splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        finish(group, order, codes, peaks, lane_lengths, log_scale, inside_prefix, bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = inside_prefix[bases[lane]] >= peaks[lane] / limit_of(scores) and draw(size, n, lanes, lane, multiroot, inside0, inside1, inside_prefix, inside_root_arc, peaks[lane] / limit_of(scores), streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def marginals_scaled(worker, workers, scores, lengths, order, multiroot, scratch, like, mu, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, UPPER, lane_lengths, log_scale, factor)
        peak = inside(n, side, lanes, multiroot, (weights, e_weights), (inside0, e_inside0), (inside1, e_inside1), (inside_prefix, e_inside_prefix), (inside_root_arc, e_inside_root_arc), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside_prefix, e_inside_prefix), bases, (seeds, e_seeds))
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, multiroot, (weights, e_weights), (inside0, e_inside0), (inside1, e_inside1), (inside_prefix, e_inside_prefix), (inside_root_arc, e_inside_root_arc), (outside0, e_outside0), (outside1, e_outside1), (outside_prefix, e_outside_prefix), (outside_starts, e_outside_starts), (seeds, e_seeds), splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish_scaled(group, order, codes, lane_lengths, log_scale, inside_prefix, e_inside_prefix, bases, log_z, status)
        if mu.size > 0:
            flatten((weights, e_weights), n * side)
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product_scaled(worker, workers, scores, lengths, order, multiroot, scratch, like, direction, out, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    d_inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    inside_prefix, at = carve(work, at, line, dtype)
    d_inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    inside_root_arc, at = carve(work, at, line, dtype)
    d_inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    outside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    outside1, at = carve(work, at, square, dtype)
    d_outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    outside_prefix, at = carve(work, at, line, dtype)
    d_outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    outside_starts, at = carve(work, at, line, dtype)
    d_outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
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
        peak = inside(n, side, lanes, multiroot, (weights, d_weights, e_weights), (inside0, d_inside0, e_inside0), (inside1, d_inside1, e_inside1), (inside_prefix, d_inside_prefix, e_inside_prefix), (inside_root_arc, d_inside_root_arc, e_inside_root_arc), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside_prefix, d_inside_prefix, e_inside_prefix), bases, (seeds, d_seeds, e_seeds))
        outer = outside(n, side, lanes, multiroot, (weights, d_weights, e_weights), (inside0, d_inside0, e_inside0), (inside1, d_inside1, e_inside1), (inside_prefix, d_inside_prefix, e_inside_prefix), (inside_root_arc, d_inside_root_arc, e_inside_root_arc), (outside0, d_outside0, e_outside0), (outside1, d_outside1, e_outside1), (outside_prefix, d_outside_prefix, e_outside_prefix), (outside_starts, d_outside_starts, e_outside_starts), (seeds, d_seeds, e_seeds), splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        finish_scaled(group, order, codes, lane_lengths, log_scale, inside_prefix, e_inside_prefix, bases, log_z, status)
        flatten((weights, d_weights, e_weights), n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)


@no_alloc_kernel
def sample_scaled(worker, workers, scores, lengths, order, multiroot, scratch, like, streams, z, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_scaled(weights, e_weights, n, side, UPPER, lane_lengths, log_scale, factor)
        store(peaks, 0, inside(n, side, lanes, multiroot, (weights, e_weights), (inside0, e_inside0), (inside1, e_inside1), (inside_prefix, e_inside_prefix), (inside_root_arc, e_inside_root_arc), splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        finish_scaled(group, order, codes, lane_lengths, log_scale, inside_prefix, e_inside_prefix, bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = draw_scaled(size, n, lanes, lane, multiroot, (inside0, e_inside0), (inside1, e_inside1), (inside_prefix, e_inside_prefix), (inside_root_arc, e_inside_root_arc), streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def marginals_far(worker, workers, scores, lengths, order, multiroot, scratch, like, mu, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    h_inside1, at = carve(work, at, square, np.float64)
    g_inside1, at = carve(work, at, square, np.float64)
    inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    h_inside_prefix, at = carve(work, at, line, np.float64)
    g_inside_prefix, at = carve(work, at, line, np.float64)
    inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    h_inside_root_arc, at = carve(work, at, line, np.float64)
    g_inside_root_arc, at = carve(work, at, line, np.float64)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    h_outside1, at = carve(work, at, square, np.float64)
    g_outside1, at = carve(work, at, square, np.float64)
    outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    h_outside_prefix, at = carve(work, at, line, np.float64)
    g_outside_prefix, at = carve(work, at, line, np.float64)
    outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
    h_outside_starts, at = carve(work, at, line, np.float64)
    g_outside_starts, at = carve(work, at, line, np.float64)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    h_seeds, at = carve(work, at, line, np.float64)
    g_seeds, at = carve(work, at, line, np.float64)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)
        peak = inside(n, side, lanes, multiroot, (weights, e_weights, h_weights, g_weights), (inside0, e_inside0, h_inside0, g_inside0), (inside1, e_inside1, h_inside1, g_inside1), (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), (inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), bases, (seeds, e_seeds, h_seeds, g_seeds))
        store(peaks, 0, peak)
        if mu.size > 0:
            outer = outside(n, side, lanes, multiroot, (weights, e_weights, h_weights, g_weights), (inside0, e_inside0, h_inside0, g_inside0), (inside1, e_inside1, h_inside1, g_inside1), (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), (inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc), (outside0, e_outside0, h_outside0, g_outside0), (outside1, e_outside1, h_outside1, g_outside1), (outside_prefix, e_outside_prefix, h_outside_prefix, g_outside_prefix), (outside_starts, e_outside_starts, h_outside_starts, g_outside_starts), (seeds, e_seeds, h_seeds, g_seeds), splat(scores, 1.0))
            store(peaks, 0, peak * outer)
        else:
            expect(lane_lengths, seeds, peaks)
        finish_far(group, order, codes, lane_lengths, inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, bases, log_z, status)
        if mu.size > 0:
            flatten((weights, e_weights, h_weights, g_weights), n * side)
            unpack(weights, group, order, n, mu, bases)


@no_alloc_kernel
def product_far(worker, workers, scores, lengths, order, multiroot, scratch, like, direction, out, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    d_inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    h_inside1, at = carve(work, at, square, np.float64)
    g_inside1, at = carve(work, at, square, np.float64)
    inside_prefix, at = carve(work, at, line, dtype)
    d_inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    h_inside_prefix, at = carve(work, at, line, np.float64)
    g_inside_prefix, at = carve(work, at, line, np.float64)
    inside_root_arc, at = carve(work, at, line, dtype)
    d_inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    h_inside_root_arc, at = carve(work, at, line, np.float64)
    g_inside_root_arc, at = carve(work, at, line, np.float64)
    outside0, at = carve(work, at, square, dtype)
    d_outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    outside1, at = carve(work, at, square, dtype)
    d_outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    h_outside1, at = carve(work, at, square, np.float64)
    g_outside1, at = carve(work, at, square, np.float64)
    outside_prefix, at = carve(work, at, line, dtype)
    d_outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    h_outside_prefix, at = carve(work, at, line, np.float64)
    g_outside_prefix, at = carve(work, at, line, np.float64)
    outside_starts, at = carve(work, at, line, dtype)
    d_outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
    h_outside_starts, at = carve(work, at, line, np.float64)
    g_outside_starts, at = carve(work, at, line, np.float64)
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
        peak = inside(n, side, lanes, multiroot, (weights, d_weights, e_weights, h_weights, g_weights), (inside0, d_inside0, e_inside0, h_inside0, g_inside0), (inside1, d_inside1, e_inside1, h_inside1, g_inside1), (inside_prefix, d_inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), (inside_root_arc, d_inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        seed(lane_lengths, n, (inside_prefix, d_inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), bases, (seeds, d_seeds, e_seeds, h_seeds, g_seeds))
        outer = outside(n, side, lanes, multiroot, (weights, d_weights, e_weights, h_weights, g_weights), (inside0, d_inside0, e_inside0, h_inside0, g_inside0), (inside1, d_inside1, e_inside1, h_inside1, g_inside1), (inside_prefix, d_inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), (inside_root_arc, d_inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc), (outside0, d_outside0, e_outside0, h_outside0, g_outside0), (outside1, d_outside1, e_outside1, h_outside1, g_outside1), (outside_prefix, d_outside_prefix, e_outside_prefix, h_outside_prefix, g_outside_prefix), (outside_starts, d_outside_starts, e_outside_starts, h_outside_starts, g_outside_starts), (seeds, d_seeds, e_seeds, h_seeds, g_seeds), splat(scores, 1.0))
        store(peaks, 0, peak * outer)
        finish_far(group, order, codes, lane_lengths, inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, bases, log_z, status)
        flatten((weights, d_weights, e_weights, h_weights, g_weights), n * side)
        scale(weights, n, side, lane_lengths, factor, peaks)
        unpack(weights, group, order, n, out, bases)


@no_alloc_kernel
def sample_far(worker, workers, scores, lengths, order, multiroot, scratch, like, streams, z, log_z, status):
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
    inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    h_inside1, at = carve(work, at, square, np.float64)
    g_inside1, at = carve(work, at, square, np.float64)
    inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    h_inside_prefix, at = carve(work, at, line, np.float64)
    g_inside_prefix, at = carve(work, at, line, np.float64)
    inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    h_inside_root_arc, at = carve(work, at, line, np.float64)
    g_inside_root_arc, at = carve(work, at, line, np.float64)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    h_outside1, at = carve(work, at, square, np.float64)
    g_outside1, at = carve(work, at, square, np.float64)
    outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    h_outside_prefix, at = carve(work, at, line, np.float64)
    g_outside_prefix, at = carve(work, at, line, np.float64)
    outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
    h_outside_starts, at = carve(work, at, line, np.float64)
    g_outside_starts, at = carve(work, at, line, np.float64)
    seeds, at = carve(work, at, line, dtype)
    e_seeds, at = carve(work, at, line, whole)
    h_seeds, at = carve(work, at, line, np.float64)
    g_seeds, at = carve(work, at, line, np.float64)
    lane_lengths, codes, peaks, log_scale, factor, bases, stack = lane_scratch(work, at, lanes, dtype, largest)
    for group in range(first, len(order), workers * lanes):
        n = pack(scores, order, group, lengths, UPPER, weights, lane_lengths, bases, codes)
        to_far((weights, e_weights, h_weights, g_weights), n, side, UPPER)
        store(peaks, 0, inside(n, side, lanes, multiroot, (weights, e_weights, h_weights, g_weights), (inside0, e_inside0, h_inside0, g_inside0), (inside1, e_inside1, h_inside1, g_inside1), (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), (inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc), splat(scores, 1.0)))
        places_of(goal_of, n, lane_lengths, bases)
        finish_far(group, order, codes, lane_lengths, inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, bases, log_z, status)
        for lane in range(min(lanes, len(order) - group)):
            example = order[group + lane]
            size = lengths[example]
            clear(z, example, 0)
            if status[example] == OK and size > 0:
                found = draw_scaled(size, n, lanes, lane, multiroot, (inside0, e_inside0, h_inside0, g_inside0), (inside1, e_inside1, h_inside1, g_inside1), (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix), (inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc), streams[example],
                    stack, z.reshape(-1), example * side * side, side,
                )
                status[example] = OK if found else OUT_OF_RANGE


@no_alloc_kernel
def entropies_far(worker, workers, scores, lengths, order, multiroot, scratch, like, out, value, status):
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
    inside1, at = carve(work, at, square, dtype)
    e_inside1, at = carve(work, at, square, whole)
    h_inside1, at = carve(work, at, square, np.float64)
    g_inside1, at = carve(work, at, square, np.float64)
    n_inside1, at = carve(work, at, square, np.float64)
    inside_prefix, at = carve(work, at, line, dtype)
    e_inside_prefix, at = carve(work, at, line, whole)
    h_inside_prefix, at = carve(work, at, line, np.float64)
    g_inside_prefix, at = carve(work, at, line, np.float64)
    n_inside_prefix, at = carve(work, at, line, np.float64)
    inside_root_arc, at = carve(work, at, line, dtype)
    e_inside_root_arc, at = carve(work, at, line, whole)
    h_inside_root_arc, at = carve(work, at, line, np.float64)
    g_inside_root_arc, at = carve(work, at, line, np.float64)
    n_inside_root_arc, at = carve(work, at, line, np.float64)
    outside0, at = carve(work, at, square, dtype)
    e_outside0, at = carve(work, at, square, whole)
    h_outside0, at = carve(work, at, square, np.float64)
    g_outside0, at = carve(work, at, square, np.float64)
    n_outside0, at = carve(work, at, square, np.float64)
    outside1, at = carve(work, at, square, dtype)
    e_outside1, at = carve(work, at, square, whole)
    h_outside1, at = carve(work, at, square, np.float64)
    g_outside1, at = carve(work, at, square, np.float64)
    n_outside1, at = carve(work, at, square, np.float64)
    outside_prefix, at = carve(work, at, line, dtype)
    e_outside_prefix, at = carve(work, at, line, whole)
    h_outside_prefix, at = carve(work, at, line, np.float64)
    g_outside_prefix, at = carve(work, at, line, np.float64)
    n_outside_prefix, at = carve(work, at, line, np.float64)
    outside_starts, at = carve(work, at, line, dtype)
    e_outside_starts, at = carve(work, at, line, whole)
    h_outside_starts, at = carve(work, at, line, np.float64)
    g_outside_starts, at = carve(work, at, line, np.float64)
    n_outside_starts, at = carve(work, at, line, np.float64)
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
        inside(n, side, lanes, multiroot, (weights, e_weights, h_weights, g_weights, n_weights), (inside0, e_inside0, h_inside0, g_inside0, n_inside0), (inside1, e_inside1, h_inside1, g_inside1, n_inside1), (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, n_inside_prefix), (inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc, n_inside_root_arc), splat(scores, 1.0))
        places_of(goal_of, n, lane_lengths, bases)
        finish_far(group, order, codes, lane_lengths, inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, bases, value, status)
        for lane in range(min(lanes, len(order) - group)):
            value[order[group + lane]] = max(n_inside_prefix[bases[lane]], 0.0) if lane_lengths[lane] > 0 else 0.0
        if out.size > 0:
            seed(lane_lengths, n, (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, n_inside_prefix), bases, (seeds, e_seeds, h_seeds, g_seeds, n_seeds))
            outside(n, side, lanes, multiroot, (weights, e_weights, h_weights, g_weights, n_weights), (inside0, e_inside0, h_inside0, g_inside0, n_inside0), (inside1, e_inside1, h_inside1, g_inside1, n_inside1), (inside_prefix, e_inside_prefix, h_inside_prefix, g_inside_prefix, n_inside_prefix), (inside_root_arc, e_inside_root_arc, h_inside_root_arc, g_inside_root_arc, n_inside_root_arc), (outside0, e_outside0, h_outside0, g_outside0, n_outside0), (outside1, e_outside1, h_outside1, g_outside1, n_outside1), (outside_prefix, e_outside_prefix, h_outside_prefix, g_outside_prefix, n_outside_prefix), (outside_starts, e_outside_starts, h_outside_starts, g_outside_starts, n_outside_starts), (seeds, e_seeds, h_seeds, g_seeds, n_seeds), splat(scores, 1.0))
            flatten((weights, e_weights, h_weights, g_weights, n_weights), n * side)
            unpack(weights, group, order, n, out, bases)
