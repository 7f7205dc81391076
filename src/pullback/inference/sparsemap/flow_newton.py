"""Newton's method for the dual of the projection onto a flow polytope, for one example. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference.sparsemap.active_set import reordered
from pullback.inference.sparsemap.flow_state import assemble, balance, lift

_EPSILON = 2.0**-52
_NEAR = 1.0  # the reduced scores of edges in the first linear system are at least minus this
_SHIFT = 1e-6  # of the Laplacian, times the imbalance: edges without a flow may leave parts of the graph alone
_LEAST = 1e-11  # of shifts
_FAR = 3.0  # the largest change of a potential in a step
_SMALL = 1e-11  # imbalances that rounding may have made
_PATIENCE = 4  # how many steps may fail to halve such an imbalance
_NOTHING = 1e-13  # flows that rounding may have made


@called
def reduce(state, nodes, longest):
    """List the edges that structures near the best one use, with their scores reduced by the values of best paths.

    By the distance, a structure of the solution scores at most `longest`, the number of its parts, less than the best one.
    Returns how many edges there are, -1 if no path leads to the last node.
    """
    tails, heads, scores, values, reached = state.tails, state.heads, state.scores, state.values, state.excess
    values[:nodes] = -np.inf
    values[nodes - 1] = 0.0
    for part in range(len(tails) - 1, -1, -1):
        if tails[part] >= 0:
            values[tails[part]] = max(values[tails[part]], scores[part] + values[heads[part]])
    if not values[0] > -np.inf:
        return -1
    reached[:nodes] = -np.inf
    reached[0] = 0.0
    count = 0
    for part in range(len(tails)):
        u, v = tails[part], heads[part]
        if u >= 0 and values[v] > -np.inf and reached[u] > -np.inf and scores[part] > -np.inf:
            reduced = scores[part] + values[v] - values[u]
            if reached[u] + reduced >= -longest - 1.0:
                reached[v] = max(reached[v], reached[u] + reduced)
                tails[count], heads[count], state.parts[count], scores[count] = u, v, part, reduced
                count += 1
    return count


@called
def descend(state, count, nodes, limit, tolerance):
    """Minimise the dual over the potentials, and write the flows that they have.

    Returns how many steps that took, the duality gap, and how much of it may be rounding.
    """
    taken, least, stalls = 0, np.inf, 0
    _start(state, count, nodes)
    while True:
        _flow(state.scores, count, state.flows)
        worst = balance(state, count, nodes, 1.0)
        stalls += worst < _SMALL and worst > 0.5 * least
        least = min(least, worst)
        ended = worst <= 4 * _EPSILON or stalls > _PATIENCE or taken == limit
        if ended or worst <= tolerance:
            _send(state, count, nodes)
            gap, rounding = _gap(state, count, nodes)
            if ended or gap <= tolerance:
                return taken, gap, rounding
            _flow(state.scores, count, state.flows)
            balance(state, count, nodes, 1.0)
        size = assemble(state, count, nodes, _LEAST + min(_SHIFT * worst, _SHIFT))
        lift(state, nodes, size)
        for node in range(nodes):
            state.step[node] = min(max(state.step[node], -_FAR), _FAR)
        _move(state.scores, state.tails, state.heads, state.step, _search(state, count, nodes), count)
        taken += 1


@called
def _start(state, count, nodes):
    """The potentials at which edges with large scores conserve their flows, negative ones included."""
    state.excess[:nodes] = 0.0
    for e in range(count):
        state.flows[e] = 1.0 if state.scores[e] >= -_NEAR else 0.0
    size = assemble(state, count, nodes, _LEAST)
    for e in range(count):
        state.flows[e] = state.scores[e] if state.flows[e] > 0.0 else 0.0
    balance(state, count, nodes, 1.0)
    lift(state, nodes, size)
    _move(state.scores, state.tails, state.heads, state.step, 1.0, count)


@called
def _send(state, count, nodes):
    """Send 1 from the first node to the last, divided at each node like its flows: the mean of some structures.

    A node that nothing leaves passes everything on along its best edge.
    """
    tails, heads, flows, mass, out, best = state.tails, state.heads, state.flows, state.right, state.values, state.firsts
    mass[:nodes] = 0.0
    out[:nodes] = 0.0
    best[:nodes] = -1
    mass[0] = 1.0
    for e in range(count):
        u = tails[e]
        flows[e] = flows[e] if flows[e] > _NOTHING else 0.0
        out[u] += flows[e]
        if best[u] < 0 or state.scores[e] > state.scores[best[u]]:
            best[u] = e
    for e in range(count):
        u = tails[e]
        if out[u] > 0.0:
            flows[e] *= mass[u] / out[u]
        elif e == best[u]:
            flows[e] = mass[u]
        mass[heads[e]] += flows[e]


@called
def _gap(state, count, nodes):
    """The duality gap of a mean of structures, and how much of it may be rounding."""
    tails, heads, flows, values, own, size = state.tails, state.heads, state.flows, state.values, 0.0, 0.0
    values[:nodes] = -np.inf
    values[nodes - 1] = 0.0
    for e in range(count - 1, -1, -1):
        slack = state.scores[e] - flows[e]
        values[tails[e]] = max(values[tails[e]], slack + values[heads[e]])
        own += slack * flows[e]
        size += abs(slack) * flows[e]
    return values[0] - own, 4 * _EPSILON * (nodes + size + abs(values[0]))


@called
def _search(state, count, nodes):
    """How far to go along the step: to the minimum of the dual, or all of it."""
    first = 0.0
    for node in range(nodes):
        first -= state.excess[node] * state.step[node]
    low, at_low, high, at_high = 0.0, first, 1.0, _slope(state, count, 1.0)
    if at_high <= -1e-9 * first:
        return 1.0
    for _ in range(30):
        middle = low - at_low * (high - low) / (at_high - at_low)
        at_middle = _slope(state, count, middle)
        if abs(at_middle) <= -0.1 * first:
            return middle
        if at_middle > 0.0:
            high, at_high, at_low = middle, at_middle, 0.5 * at_low
        else:
            low, at_low, at_high = middle, at_middle, 0.5 * at_high
    return low


@called
def _slope(state, count, length):
    """The derivative of the dual at a point of the step."""
    return _crossing(state.scores, state.tails, state.heads, state.step, length, count) - state.step[0]


@reordered
def _crossing(scores, tails, heads, step, length, count):
    total = 0.0
    for e in range(count):
        along = step[np.uint64(tails[e])] - step[np.uint64(heads[e])]
        total += along * max(scores[e] + length * along, 0.0)
    return total


@reordered
def _move(scores, tails, heads, step, length, count):
    for e in range(count):
        scores[e] += length * (step[np.uint64(tails[e])] - step[np.uint64(heads[e])])


@reordered
def _flow(scores, count, flows):
    for e in range(count):
        flows[e] = max(scores[e], 0.0)
