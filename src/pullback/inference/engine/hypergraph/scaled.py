"""Sums over a hypergraph by weights: products and sums of positive numbers, without an exponential and a logarithm per edge.

The weight of a part is exp(score - a), and the value of a node v, which stands for sums of exp(score) of its derivations, is
kept as a multiple of exp(a h(v)), h(v) being the largest number of parts of its derivations. So an edge whose derivations have
fewer parts gets the factor exp(-a d), d = h(v) - h(left) - h(right) - (1 if it has a part). The number a is about the logarithm
of the sum's growth per part: values stay near 1. It is guessed from the mean weight, and corrected by the goal's value.

What leaves the range of the dtype is lost. The share of an edge in the goal is a product of its weight, its factor, the
children's values and the node's outside value. If one of them is lost, the share is below the smallest normal number times the
largest of the others. Where that is not negligible for some example, `sums` says so, and the caller takes logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import inner
from pullback.inference._numba.lanes import exp, lanes_in, larger, load, splat, store, where_larger
from pullback.inference._numba.vectors import select_positive
from pullback.inference.engine.rules.numbers import (
    at,
    constant,
    plus,
    put,
    share_of,
    times,
    value_of,
    where_above,
    where_positive,
)

MOST_EXTRA = 64  # the largest d that has a factor in the table
SMALL = 8 + MOST_EXTRA  # vectors of `_settle`: seven, and the table
_ATTEMPTS, _NEAR = 3, 8.0  # how often the rate is corrected, and the logarithm of a goal's value that is near 1


@inner
def _weigh(packed, count, lanes, weights, best, total):
    """Write exp(score - best) of each part, its largest score being `best[lane]`, and their sum."""
    nothing = splat(packed, -np.inf)
    most = nothing
    for p in range(count):
        most = larger(load(packed, p * lanes), most)
    most = where_larger(most, nothing, most, splat(packed, 0.0))
    everything = splat(packed, 0.0)
    for p in range(count):
        w = exp(load(packed, p * lanes) - most)
        store(weights, p * lanes, w)
        everything = everything + w
    store(best, 0, most)
    store(total, 0, everything)


@inner
def _rescale(weights, count, lanes, factor, peak):
    """Multiply the weights by a number per lane, and write the largest."""
    f, most = load(factor, 0), splat(weights, 0.0)
    for p in range(count):
        w = load(weights, p * lanes) * f
        store(weights, p * lanes, w)
        most = larger(w, most)
    store(peak, 0, most)


@inner
def _upward(graph, extra, top, lanes, weights, powers, last, values):
    """Values of the nodes up to `top`; zero for those behind an example's own goal, `last[lane]`. Returns the largest."""
    first, left, right, part, _ = graph
    zero, ends = constant(values, 0.0), load(last, 0)
    highest = value_of(zero)
    put(values, 0, constant(values, 1.0))
    for v in range(1, top + 1):
        total = zero
        for e in range(first[v], first[v + 1]):
            x = times(at(values, left[e] * lanes), at(weights, part[e] * lanes))
            if len(right) > 0:
                x = times(x, at(values, right[e] * lanes))
            if len(extra) > 0:
                x = times(x, at(powers, extra[e] * lanes))
            total = plus(total, x)
        total = where_above(splat(last, v), ends, zero, total)
        put(values, v * lanes, total)
        highest = larger(value_of(total), highest)
    return highest


@inner
def _downward(graph, extra, top, lanes, weights, powers, values, outside, used):
    """Outside values of the nodes, from those of the goals, and the results of parts, to be added to `used`.

    Returns the largest outside value.
    """
    first, left, right, part, _ = graph
    zero, highest = constant(outside, 0.0), splat(used, 0.0)
    for v in range(top, 0, -1):
        out = at(outside, v * lanes)
        highest = larger(value_of(out), highest)
        for e in range(first[v], first[v + 1]):
            q = where_positive(out, times(out, at(weights, part[e] * lanes)), zero)  # padding has weights, too
            if len(extra) > 0:
                q = times(q, at(powers, extra[e] * lanes))
            a = at(values, left[e] * lanes)
            if len(right) > 0:
                b = at(values, right[e] * lanes)
                put(outside, right[e] * lanes, plus(at(outside, right[e] * lanes), times(q, a)))
                q = times(q, b)
            put(outside, left[e] * lanes, plus(at(outside, left[e] * lanes), q))
            store(used, part[e] * lanes, load(used, part[e] * lanes) + share_of(times(q, a)))
    return highest


@inner
def _settle(graph, scale, goals, order, group, filled, top, packed, room, rates):
    """Values near 1, with weights for them and the rate of each example; returns whether that was possible."""
    height, extra, counts, most = scale
    weights, values, _, small = room
    lanes, count = lanes_in(packed), graph[4][top]
    last, factor, best, total = small[:lanes], small[lanes:], small[2 * lanes :], small[3 * lanes :]
    peaks, powers = small[4 * lanes :], small[7 * lanes :]
    _weigh(packed, count, lanes, weights, best, total)
    store(weights, (len(weights) // lanes - 1) * lanes, splat(weights, 1.0))  # of no part
    for lane in range(lanes):
        goal = max(goals[order[group + lane if lane < filled else group]], 0)
        if not total[lane] > 0.0:
            return False
        growth = math.log(total[lane] / count) + counts[goal] / max(height[goal], 1)
        last[lane], rates[lane], factor[lane] = goal, best[lane] + growth, math.exp(-growth)
    for attempt in range(_ATTEMPTS):
        _rescale(weights, count, lanes, factor, peaks)
        for i in range(most + 1):
            for lane in range(lanes):
                powers[i * lanes + lane] = math.exp(-rates[lane] * i)
        store(peaks, lanes, _upward(graph, extra, top, lanes, weights, powers, last, values))
        worst = 0.0
        for lane in range(filled):
            value = values[int(last[lane]) * lanes + lane]
            if not 0.0 < value < np.inf:
                return False
            worst = max(worst, abs(math.log(value)))
        if worst < _NEAR or attempt == _ATTEMPTS - 1:
            break
        for lane in range(lanes):
            goal = int(last[lane])
            step = math.log(values[goal * lanes + lane]) / max(height[goal], 1)
            factor[lane], rates[lane] = math.exp(-step), rates[lane] + step
    return True


@inner
def _share(peaks, powers, lanes, lane, most):
    """A bound on the share of an edge in the goal, with one of its factors left out."""
    weight, value, out = peaks[lane], peaks[lanes + lane], peaks[2 * lanes + lane]
    return max(weight, 1.0) * max(value, 1.0) ** 2 * max(out, 1.0) * max(powers[most * lanes + lane], 1.0)


@inner
def sums(graph, scale, goals, order, group, filled, top, packed, room, log_z, used):
    """Log-partitions of a group of examples, and the probabilities of parts, side by side; returns whether they are right.

    Args:
        graph: its arrays.
        scale: h(v), d of each edge ([0] if it is 0 everywhere), the logarithm of the number of derivations, and the largest d.
        goals: of all examples.
        order: of the examples.
        group: the first one's place in it.
        filled: how many there are.
        top: the last node.
        packed: the scores, side by side.
        room: for weights, values and outside values, side by side, and for SMALL vectors.
        log_z: of all examples, to be written.
        used: of parts, zeros.
    """
    height, extra, _, most = scale
    weights, values, outside, small = room
    lanes = lanes_in(packed)
    rates, peaks, powers = np.empty(lanes), small[4 * lanes :], small[7 * lanes :]
    if not _settle(graph, scale, goals, order, group, filled, top, packed, room, rates):
        return False
    outside[: (top + 1) * lanes] = 0.0
    for lane in range(lanes):
        goal = int(small[lane])
        if goal > 0:
            outside[goal * lanes + lane] = 1.0 / values[goal * lanes + lane]
    store(peaks, 2 * lanes, _downward(graph, extra, top, lanes, weights, powers, values, outside, used))
    limit = 1e28 if packed.itemsize == 4 else 1e290
    for lane in range(filled):
        goal, b = int(small[lane]), order[group + lane]
        if not _share(peaks, powers, lanes, lane, most) < limit:
            return False
        log_z[b] = math.log(values[goal * lanes + lane]) + rates[lane] * height[goal] if goals[b] >= 0 else -np.inf
    return True


@inner
def tangents(graph, scale, goals, order, group, filled, top, packed, direction, room, derivatives, used):
    """The derivatives of the parts' probabilities along a direction of the scores, in float64; returns whether they are right.

    The direction, side by side like the scores, becomes that of the weights; it may be infinite where parts have none.
    `derivatives` are room for those of values, of outside values and of powers.
    """
    height, extra, _, most = scale
    weights, values, outside, small = room
    slopes, moved, still = derivatives
    lanes = lanes_in(packed)
    rates, peaks, powers = np.empty(lanes), small[4 * lanes :], small[7 * lanes :]
    if not _settle(graph, scale, goals, order, group, filled, top, packed, room, rates):
        return False
    zero = splat(packed, 0.0)
    longest = zero
    for p in range(graph[4][top]):
        d = select_positive(load(weights, p * lanes), load(direction, p * lanes), zero)
        store(direction, p * lanes, d * load(weights, p * lanes))
        longest = larger(larger(d, zero - d), longest)
    store(small, lanes, longest)
    store(direction, len(direction) - lanes, zero)  # of no part
    still[:] = 0.0
    duals = (weights, direction), (powers, still), (values, slopes)
    _upward(graph, extra, top, lanes, duals[0], duals[1], small, duals[2])
    outside[: (top + 1) * lanes] = 0.0
    moved[: (top + 1) * lanes] = 0.0
    for lane in range(lanes):
        goal = int(small[lane]) * lanes + lane
        if small[lane] > 0:
            outside[goal], moved[goal] = 1.0 / values[goal], -slopes[goal] / values[goal] / values[goal]
    store(peaks, 2 * lanes, _downward(graph, extra, top, lanes, duals[0], duals[1], duals[2], (outside, moved), used))
    for lane in range(filled):
        reach_of = 1.0 + small[lanes + lane] * height[int(small[lane])]
        if not _share(peaks, powers, lanes, lane, most) * reach_of * reach_of < 1e285:
            return False
    return True
