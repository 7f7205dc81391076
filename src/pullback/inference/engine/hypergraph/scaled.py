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
def _upward(first, left, right, part, extra, top, lanes, weights, powers, last, values, peak):
    """Values of the nodes up to `top`; zero for those behind an example's own goal, `last[lane]`."""
    zero = splat(weights, 0.0)
    ends, highest = load(last, 0), zero
    store(values, 0, splat(weights, 1.0))
    for v in range(1, top + 1):
        total = zero
        for e in range(first[v], first[v + 1]):
            x = load(values, left[e] * lanes) * load(weights, part[e] * lanes)
            if len(right) > 0:
                x = x * load(values, right[e] * lanes)
            if len(extra) > 0:
                x = x * load(powers, extra[e] * lanes)
            total = total + x
        total = where_larger(splat(weights, v), ends, zero, total)
        store(values, v * lanes, total)
        highest = larger(total, highest)
    store(peak, 0, highest)


@inner
def _downward(first, left, right, part, extra, top, lanes, weights, powers, values, outside, used, peak):
    """Outside values of the nodes, from those of the goals, and the probabilities of parts, to be added to `used`."""
    highest = splat(weights, 0.0)
    for v in range(top, 0, -1):
        out = load(outside, v * lanes)
        highest = larger(out, highest)
        for e in range(first[v], first[v + 1]):
            q = out * load(weights, part[e] * lanes)
            if len(extra) > 0:
                q = q * load(powers, extra[e] * lanes)
            a = load(values, left[e] * lanes)
            if len(right) > 0:
                b = load(values, right[e] * lanes)
                store(outside, right[e] * lanes, load(outside, right[e] * lanes) + q * a)
                q = q * b
            store(outside, left[e] * lanes, load(outside, left[e] * lanes) + q)
            store(used, part[e] * lanes, load(used, part[e] * lanes) + q * a)
    store(peak, 0, highest)


@inner
def _settle(graph, scale, goals, order, group, filled, top, packed, room, rates):
    """Values near 1, with weights for them and the rate of each example; returns whether that was possible."""
    first, left, right, part, reach = graph
    height, extra, counts, most = scale
    weights, values, _, small = room
    lanes, count = lanes_in(packed), reach[top]
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
        _upward(first, left, right, part, extra, top, lanes, weights, powers, last, values, peaks[lanes:])
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
    first, left, right, part, _ = graph
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
    _downward(first, left, right, part, extra, top, lanes, weights, powers, values, outside, used, peaks[2 * lanes :])
    limit = 1e28 if packed.itemsize == 4 else 1e290
    for lane in range(filled):
        goal, b = int(small[lane]), order[group + lane]
        if not _share(peaks, powers, lanes, lane, most) < limit:
            return False
        log_z[b] = math.log(values[goal * lanes + lane]) + rates[lane] * height[goal] if goals[b] >= 0 else -np.inf
    return True


@inner
def _upward_tangent(first, left, right, part, extra, top, lanes, weights, powers, last, direction, values, node_tangents):
    """The derivatives of `values` along a direction of the scores."""
    zero, ends = splat(weights, 0.0), load(last, 0)
    store(node_tangents, 0, zero)
    for v in range(1, top + 1):
        total = zero
        for e in range(first[v], first[v + 1]):
            a, d = load(values, left[e] * lanes), load(direction, part[e] * lanes)
            x = a * d + load(node_tangents, left[e] * lanes)
            if len(right) > 0:
                x = x * load(values, right[e] * lanes) + a * load(node_tangents, right[e] * lanes)
            x = x * load(weights, part[e] * lanes)
            if len(extra) > 0:
                x = x * load(powers, extra[e] * lanes)
            total = total + x
        store(node_tangents, v * lanes, where_larger(splat(weights, v), ends, zero, total))


@inner
def _downward_tangent(graph, extra, top, lanes, weights, powers, direction, values, node_tangents, outside, moved, used, peak):
    """The dual numbers of `_downward`: `moved` are the derivatives of outside values, `used` gets those of probabilities."""
    first, left, right, part, _ = graph
    zero = splat(weights, 0.0)
    highest = zero
    for v in range(top, 0, -1):
        out, dout = load(outside, v * lanes), load(moved, v * lanes)
        highest = larger(out, highest)
        for e in range(first[v], first[v + 1]):
            w = load(weights, part[e] * lanes)
            if len(extra) > 0:
                w = w * load(powers, extra[e] * lanes)
            q = out * w
            dq = select_positive(out, (dout + out * load(direction, part[e] * lanes)) * w, zero)
            a, da = load(values, left[e] * lanes), load(node_tangents, left[e] * lanes)
            if len(right) > 0:
                b, db = load(values, right[e] * lanes), load(node_tangents, right[e] * lanes)
                store(outside, right[e] * lanes, load(outside, right[e] * lanes) + q * a)
                store(moved, right[e] * lanes, load(moved, right[e] * lanes) + (dq * a + q * da))
                dq = dq * b + q * db
                q = q * b
            store(outside, left[e] * lanes, load(outside, left[e] * lanes) + q)
            store(moved, left[e] * lanes, load(moved, left[e] * lanes) + dq)
            store(used, part[e] * lanes, load(used, part[e] * lanes) + (dq * a + q * da))
    store(peak, 0, highest)


@inner
def tangents(graph, scale, goals, order, group, filled, top, packed, direction, room, node_tangents, moved, used):
    """The derivatives of the parts' probabilities along a direction of the scores, in float64; returns whether they are right.

    The direction, side by side like the scores, is changed where parts have no weight: it may be infinite there.
    """
    first, left, right, part, reach = graph
    height, extra, _, most = scale
    weights, values, outside, small = room
    lanes = lanes_in(packed)
    rates, peaks, powers = np.empty(lanes), small[4 * lanes :], small[7 * lanes :]
    if not _settle(graph, scale, goals, order, group, filled, top, packed, room, rates):
        return False
    zero = splat(packed, 0.0)
    longest = zero
    for p in range(reach[top]):
        d = select_positive(load(weights, p * lanes), load(direction, p * lanes), zero)
        store(direction, p * lanes, d)
        longest = larger(larger(d, zero - d), longest)
    store(small, lanes, longest)
    _upward_tangent(first, left, right, part, extra, top, lanes, weights, powers, small, direction, values, node_tangents)
    outside[: (top + 1) * lanes] = 0.0
    moved[: (top + 1) * lanes] = 0.0
    for lane in range(lanes):
        goal = int(small[lane])
        if goal > 0:
            value = values[goal * lanes + lane]
            outside[goal * lanes + lane] = 1.0 / value
            moved[goal * lanes + lane] = -node_tangents[goal * lanes + lane] / value / value
    _downward_tangent(
        graph, extra, top, lanes, weights, powers, direction, values, node_tangents, outside, moved, used, peaks[2 * lanes :]
    )
    for lane in range(filled):
        reach_of = 1.0 + small[lanes + lane] * height[int(small[lane])]
        if not _share(peaks, powers, lanes, lane, most) * reach_of * reach_of < 1e285:
            return False
    return True
