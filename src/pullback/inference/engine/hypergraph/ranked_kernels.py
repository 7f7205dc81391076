"""The k best derivations of each example on the CPU, by deviations from better ones.

The value of every node, from `upward_maximum` for several examples in lanes, says what another edge costs there, whatever the
rest of the derivation: loss(e) = value(node) - value(left) - value(right) - score(part). A derivation is a list of choices in
the order of a walk from the goal, each the rank of an edge by its loss. It is found as a deviation from another one: the same
choices before one position, another choice there, the best ones after it. So no derivation is found twice, and the next best is
the best of all deviations from those found. Of equal ones, the one that deviates from the better derivation comes first, and of
those the one that deviates first.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called, kernel
from pullback.inference._numba.lanes import aligned, lanes_in
from pullback.inference._numba.packing import check, pack
from pullback.inference.engine.hypergraph.kernels import _enter
from pullback.inference.engine.hypergraph.sweeps import upward_maximum

ORIGIN, POSITION, RANK = range(3)  # of a deviation: the derivation, where it changes, and the new choice


@called
def _before(values, entries, a, b):
    """Whether deviation a comes before deviation b."""
    if values[a] != values[b]:
        return values[a] > values[b]
    for field in range(3):
        if entries[a, field] != entries[b, field]:
            return entries[a, field] < entries[b, field]
    return False


@called
def _swap(values, entries, a, b):
    values[a], values[b] = values[b], values[a]
    for field in range(3):
        entries[a, field], entries[b, field] = entries[b, field], entries[a, field]


@called
def _push(values, entries, size, x, origin, position, rank):
    """Add a deviation to the heap."""
    at = size
    values[at] = x
    entries[at, ORIGIN], entries[at, POSITION], entries[at, RANK] = origin, position, rank
    while at > 0 and _before(values, entries, at, (at - 1) // 2):
        _swap(values, entries, at, (at - 1) // 2)
        at = (at - 1) // 2


@called
def _drop(values, entries, size):
    """Remove the best deviation from a heap, to behind its new end."""
    _swap(values, entries, 0, size - 1)
    at, size = 0, size - 1
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(values, entries, child + 1, child):
            child += 1
        if not _before(values, entries, child, at):
            return
        _swap(values, entries, at, child)
        at = child


@called
def _order(v, k, p, graph, flat, base, parts, best, lanes, lane, edges, losses, counts):
    """The up to k edges of a node with the smallest losses, in row p; the first of equals first."""
    first, left, right, part, _ = graph
    value, count = best[v * lanes + lane], 0
    for e in range(first[v], first[v + 1]):
        x = best[left[e] * lanes + lane]
        if part[e] < parts:
            x += flat[base + part[e]]
        if len(right) > 0:
            x += best[right[e] * lanes + lane]
        if not x > -np.inf or (count == k and value - x >= losses[p, k - 1]):
            continue
        at = min(count, k - 1)
        while at > 0 and value - x < losses[p, at - 1]:
            losses[p, at], edges[p, at] = losses[p, at - 1], edges[p, at - 1]
            at -= 1
        losses[p, at], edges[p, at] = value - x, e
        count = min(count + 1, k)
    counts[p] = count


@called
def _derive(
    d, goal, total, before, origin, changed, rank, k, search, graph, flat, base, parts, best, lanes, lane, size, opened
):  # fmt: skip
    """Walk derivation d, the deviation of `origin` at position `changed`, and add its own deviations to the heap.

    Its value is `total`, and `before` with the best choice at that position. Returns the size of the heap, and how many nodes
    are open.
    """
    choices, places, owners, edges, losses, counts, values, entries, stack = search
    _, left, right, _, _ = graph
    stack[0], height, position = goal, 1, 0
    while height > 0:
        height -= 1
        v = stack[height]
        if v == 0:
            continue
        if places[v] < 0:
            _order(v, k, opened, graph, flat, base, parts, best, lanes, lane, edges, losses, counts)
            places[v], owners[opened] = opened, v
            opened += 1
        p, chosen = places[v], 0
        if position < changed:
            chosen = choices[origin, position]
        else:
            chosen = rank if position == changed else 0
            if chosen + 1 < counts[p]:
                x = (before if position == changed else total) - losses[p, chosen + 1]
                _push(values, entries, size, x, d, position, chosen + 1)
                size += 1
        choices[d, position] = chosen
        position += 1
        e = edges[p, chosen]
        if len(right) > 0:
            stack[height] = right[e]
            height += 1
        stack[height] = left[e]
        height += 1
    return size, opened


@called
def _write(d, goal, search, graph, parts, flat, base, out):
    """Write the parts of a derivation, and return their score."""
    choices, places, _, edges, _, _, _, _, stack = search
    _, left, right, part, _ = graph
    stack[0], height, position, count, total = goal, 1, 0, 0, 0.0
    while height > 0:
        height -= 1
        v = stack[height]
        if v == 0:
            continue
        e = edges[places[v], choices[d, position]]
        position += 1
        if part[e] < parts:
            out[count] = part[e]
            count += 1
            total += flat[base + part[e]]
        if len(right) > 0:
            stack[height] = right[e]
            height += 1
        stack[height] = left[e]
        height += 1
    return total


@kernel
def ranked(worker, workers, graph, scores, goals, order, deepest, out, totals, codes):
    """Write the parts of the best structures and their scores, best first; leave the others as they are."""
    first, left, right, part, reach = graph
    lanes, k, parts = lanes_in(scores), totals.shape[1], scores.shape[1]
    flat, bases = scores.reshape(-1), np.empty(lanes, np.int64)
    nodes = max(goals[order[0]], 0) + 1
    best, firsts = aligned(nodes * lanes, np.empty(0)), np.empty(nodes * lanes, np.int64)
    packed, found = aligned((parts + 1) * lanes, scores), aligned(lanes, scores)
    most = min(nodes, k * deepest + 1)  # that derivations have together
    sums, befores, changes = np.empty(k), np.empty(k), np.empty(k, np.int64)  # of derivations, as `_derive` takes them
    places, owners, stack = np.full(nodes, -1), np.empty(most, np.int64), np.empty(2 * deepest + 2, np.int64)
    edges, losses, counts = np.empty((most, k), np.int32), np.empty((most, k)), np.empty(most, np.int64)
    values, entries = np.empty(k * deepest + 1), np.empty((k * deepest + 1, 3), np.int64)
    choices = np.empty((k, deepest), np.int32)
    search = choices, places, owners, edges, losses, counts, values, entries, stack
    for group in range(worker * lanes, len(order), workers * lanes):
        top, filled = _enter(scores, goals, order, group, bases)
        pack(flat, bases, reach[top], packed)
        check(packed, reach[top], found)
        upward_maximum(first, left, right, part, top, lanes, packed, best, firsts)
        for lane in range(filled):
            b, base = order[group + lane], bases[lane]
            goal, total = goals[b], best[max(goals[b], 0) * lanes + lane] if goals[b] >= 0 else -np.inf
            codes[b] = found[lane] + (total == -np.inf)
            if not -np.inf < total < np.inf:
                continue
            size = opened = origin = rank = d = 0
            sums[0], befores[0], changes[0] = total, total, -1
            while True:
                size, opened = _derive(
                    d, goal, sums[d], befores[d], origin, changes[d], rank,
                    k, search, graph, flat, base, parts, best, lanes, lane, size, opened,
                )  # fmt: skip
                totals[b, d] = _write(d, goal, search, graph, parts, flat, base, out[b, d])
                d += 1
                if d == k or size == 0:
                    break
                origin, changes[d], rank = entries[0, ORIGIN], entries[0, POSITION], entries[0, RANK]
                sums[d], befores[d] = values[0], befores[origin] if changes[d] == changes[origin] else sums[origin]
                _drop(values, entries, size)
                size -= 1
            for p in range(opened):
                places[owners[p]] = -1
