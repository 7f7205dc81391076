"""The compiled entry points: groups of examples in lanes, groups over threads.

All take the hypergraph's arrays (first, left, right, part, reach), scores `[B, K]`, the goal node of each example `[B]` (-1: no
structure), and the examples in `order` of falling goals, so that a group needs the nodes up to its first example's goal.
`codes[b]` is not zero where scores of an example, or of its padding, hold NaN or +inf, or no structure is feasible: the caller
looks into it.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner, kernel
from pullback.inference._numba.lanes import aligned, lanes_in, store
from pullback.inference._numba.packing import check, pack, unpack
from pullback.inference._numba.random_kernels import uniform
from pullback.inference._numba.vectors import load_wide, narrow
from pullback.inference.engine.hypergraph.scaled import MOST_EXTRA, SMALL
from pullback.inference.engine.hypergraph.scaled import sums as by_weights
from pullback.inference.engine.hypergraph.scaled import tangents as tangents_by_weights
from pullback.inference.engine.hypergraph.sweeps import (
    downward,
    downward_tangent,
    upward_entropy,
    upward_maximum,
    upward_sum,
    upward_tangent,
)
from pullback.inference.front.modes import Mode

LOST = 16.0  # a code: digits would be lost, and nothing is written


@inner
def _enter(scores, goals, order, group, bases):
    """Where the examples of a group begin, and the last node that they need; lanes without an example repeat the first."""
    for lane in range(len(bases)):
        place = group + lane if group + lane < len(order) else group
        bases[lane] = order[place] * scores.shape[1]
    return max(goals[order[group]], 0), min(len(bases), len(order) - group)


@inner
def _seed(goals, order, group, lanes, top, reached):
    reached[: (top + 1) * lanes] = 0.0
    for lane in range(min(lanes, len(order) - group)):
        if goals[order[group + lane]] > 0:
            reached[goals[order[group + lane]] * lanes + lane] = 1.0


@kernel
def argmax(worker, workers, graph, scores, goals, order, z, log_z, codes):
    """Write the best structures as zeros and ones, and their scores."""
    first, left, right, part, reach = graph
    lanes = lanes_in(scores)
    flat, bases = scores.reshape(-1), np.empty(lanes, np.int64)
    nodes = max(goals[order[0]], 0) + 1
    values, choices = aligned(nodes * lanes, np.empty(0)), np.empty(nodes * lanes, np.int64)
    stack, found = np.empty(nodes + 1, np.int64), aligned(lanes, scores)
    packed = aligned((scores.shape[1] + 1) * lanes, scores)
    for group in range(worker * lanes, len(order), workers * lanes):
        top, filled = _enter(scores, goals, order, group, bases)
        pack(flat, bases, reach[top], packed)
        check(packed, reach[top], found)
        upward_maximum(first, left, right, part, top, lanes, packed, values, choices)
        for lane in range(filled):
            b = order[group + lane]
            log_z[b] = values[goals[b] * lanes + lane] if goals[b] >= 0 else -np.inf
            codes[b] = found[lane] + (log_z[b] == -np.inf)
            if not -np.inf < log_z[b] < np.inf:
                continue
            stack[0], height = goals[b], 1
            while height > 0:
                height -= 1
                v = stack[height]
                if v > 0:
                    e = choices[v * lanes + lane]
                    if part[e] < z.shape[1]:
                        z[b, part[e]] = 1.0
                    stack[height] = left[e]
                    height += 1
                    if len(right) > 0:
                        stack[height] = right[e]
                        height += 1


@kernel
def sums(worker, workers, graph, scores, goals, order, widest, scale, mode, seeds, out, log_z, codes):
    """Write log-partitions and, by `mode`, marginals or samples: by weights, or by logarithms where those lose digits."""
    first, left, right, part, reach = graph
    lanes = lanes_in(scores)
    flat, bases = scores.reshape(-1), np.empty(lanes, np.int64)
    nodes = max(goals[order[0]], 0) + 1
    values, terms = aligned(nodes * lanes, np.empty(0)), aligned((widest + 1) * lanes, np.empty(0))
    found = aligned(lanes, scores)
    scaled = mode != Mode.SAMPLE and scale[3] <= MOST_EXTRA
    of_nodes, of_parts = nodes * lanes, (scores.shape[1] + 1) * lanes
    # one piece of memory: the system would take back several large ones after each call, and clear their pages
    block = aligned(first[nodes] * lanes + 2 * of_nodes + 3 * of_parts, scores)
    packed, used, parts = block[:of_parts], block[of_parts : 2 * of_parts], block[2 * of_parts : 3 * of_parts]
    block = block[3 * of_parts :]
    plain, reached, weights = block[:of_nodes], block[of_nodes : 2 * of_nodes], block[2 * of_nodes :]
    room = parts, plain, reached, aligned(SMALL * lanes, scores)
    stack = np.empty(nodes + 1, np.int64)
    for group in range(worker * lanes, len(order), workers * lanes):
        top, filled = _enter(scores, goals, order, group, bases)
        pack(flat, bases, reach[top], packed)
        check(packed, reach[top], found)
        if scaled:
            used[:] = 0.0
        if scaled and by_weights(graph, scale, goals, order, group, filled, top, packed, room, log_z, used):
            for lane in range(filled):
                codes[order[group + lane]] = found[lane] + (goals[order[group + lane]] < 0)
            if mode == Mode.MARGINALS:
                unpack(used, bases, filled, reach[top], out.reshape(-1))
            continue
        upward_sum(first, left, right, part, top, lanes, packed, values, weights, terms)
        for lane in range(filled):
            b = order[group + lane]
            log_z[b] = values[goals[b] * lanes + lane] if goals[b] >= 0 else -np.inf
            codes[b] = found[lane] + (log_z[b] == -np.inf)
            if mode == Mode.SAMPLE and -np.inf < log_z[b] < np.inf:  # elsewhere no edge has a weight
                _walk(first, left, right, part, goals[b], weights, lanes, lane, seeds[b], stack, out[b])
        if mode == Mode.MARGINALS:
            _seed(goals, order, group, lanes, top, reached)
            used[:] = 0.0
            downward(first, left, right, part, top, lanes, weights, packed, reached, used)
            unpack(used, bases, filled, reach[top], out.reshape(-1))


@inner
def _walk(first, left, right, part, goal, weights, lanes, lane, seed, stack, z):
    """Draw a derivation from the goal down, and write its parts."""
    stack[0], height, drawn = goal, 1, 0
    while height > 0:
        height -= 1
        v = stack[height]
        if v == 0:
            continue
        u, drawn = uniform(seed, drawn)
        chosen = -1
        for e in range(first[v], first[v + 1]):
            w = weights[e * lanes + lane]
            if w > 0:
                chosen = e
                u -= w
                if u < 0:
                    break
        if part[chosen] < len(z):
            z[part[chosen]] = 1.0
        stack[height] = left[chosen]
        height += 1
        if len(right) > 0:
            stack[height] = right[chosen]
            height += 1


@kernel
def tangents(worker, workers, graph, scores, goals, order, widest, mode, direction, out, value, codes):
    """Write entropies, or the derivative of the marginals along a direction or along -log p (the entropy's gradient)."""
    first, left, right, part, reach = graph
    lanes = lanes_in(scores)
    flat, bases, flat_direction = scores.reshape(-1), np.empty(lanes, np.int64), direction.reshape(-1)
    nodes = max(goals[order[0]], 0) + 1
    wide = np.empty(0)
    values, terms = aligned(nodes * lanes, wide), aligned((widest + 1) * lanes, wide)
    weights, found = aligned(first[nodes] * lanes, scores), aligned(lanes, scores)
    packed = aligned((scores.shape[1] + 1) * lanes, scores)
    node_tangents = aligned(nodes * lanes, wide)
    downwards = mode != Mode.ENTROPY
    reached, moved = aligned(nodes * lanes * downwards, wide), aligned(nodes * lanes * downwards, wide)
    used = aligned((scores.shape[1] + 1) * lanes * downwards, wide)
    for group in range(worker * lanes, len(order), workers * lanes):
        top, filled = _enter(scores, goals, order, group, bases)
        pack(flat, bases, reach[top], packed)
        check(packed, reach[top], found)
        upward_sum(first, left, right, part, top, lanes, packed, values, weights, terms)
        if mode == Mode.TANGENT:
            pack(flat_direction, bases, reach[top], packed)
            upward_tangent(first, left, right, part, top, lanes, weights, packed, packed, node_tangents)
        else:
            upward_entropy(first, left, right, part, top, lanes, weights, packed, node_tangents)
        for lane in range(filled):
            b, goal = order[group + lane], goals[order[group + lane]]
            feasible = goal >= 0 and values[goal * lanes + lane] > -np.inf
            value[b] = node_tangents[goal * lanes + lane] if feasible else -np.inf
            codes[b] = found[lane] + (not feasible)
        if downwards:
            _seed(goals, order, group, lanes, top, reached)
            moved[: (top + 1) * lanes] = 0.0
            used[:] = 0.0
            along_surprise = mode == Mode.ENTROPY_TANGENT
            downward_tangent(graph, top, lanes, weights, packed, along_surprise, packed, node_tangents, reached, moved, used)
            for at in range(reach[top]):
                store(packed, at * lanes, narrow(load_wide(used, at * lanes, packed), packed))
            unpack(packed, bases, filled, reach[top], out.reshape(-1))


@kernel
def weighted_tangents(worker, workers, graph, scores, goals, order, scale, direction, out, codes):
    """Write the derivative of the marginals along a direction, all in float64, by weights.

    Groups of examples in which those would lose digits get the code LOST.
    """
    reach, lanes, nodes, parts = graph[4], lanes_in(scores), max(goals[order[0]], 0) + 1, scores.shape[1] + 1
    flat, bases, flat_direction = scores.reshape(-1), np.empty(lanes, np.int64), direction.reshape(-1)
    packed, packed_direction, found = aligned(parts * lanes, scores), aligned(parts * lanes, scores), aligned(lanes, scores)
    weights, values, outside = aligned(parts * lanes, scores), aligned(nodes * lanes, scores), aligned(nodes * lanes, scores)
    room = weights, values, outside, aligned(SMALL * lanes, scores)
    derivatives = aligned(nodes * lanes, scores), aligned(nodes * lanes, scores), aligned(SMALL * lanes, scores)
    used = aligned(parts * lanes, scores)
    for group in range(worker * lanes, len(order), workers * lanes):
        top, filled = _enter(scores, goals, order, group, bases)
        pack(flat, bases, reach[top], packed)
        check(packed, reach[top], found)
        pack(flat_direction, bases, reach[top], packed_direction)
        used[:] = 0.0
        right = tangents_by_weights(
            graph, scale, goals, order, group, filled, top, packed, packed_direction, room, derivatives, used
        )
        for p in range(reach[top] * lanes):  # 0 times an infinite direction, on a part without probability
            right &= used[p] == used[p]
        for lane in range(filled):
            codes[order[group + lane]] = found[lane] + (goals[order[group + lane]] < 0) if right else LOST
        if right:
            unpack(used, bases, filled, reach[top], out.reshape(-1))
