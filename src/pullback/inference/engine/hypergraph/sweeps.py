"""Sweeps over a hypergraph for several examples at once, one per SIMD lane.

Charts are flat arrays of vectors: `values[v * lanes]` is the vector of node v, `weights[e * lanes]` that of edge e. Values
are in float64 whatever the scores' precision; weights, p(edge | node), have that precision. Downward sweeps multiply
and add probabilities only, so nothing there can overflow, and what a node's edges share always sums to one.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner
from pullback.inference._numba.lanes import (
    exp,
    larger,
    load,
    splat,
    splat_index,
    store,
    where_larger,
)
from pullback.inference._numba.vectors import (
    load_wide,
    log,
    narrow,
    select_positive,
    splat_wide,
    widen,
)


@inner
def term(left, right, part, e, lanes, scores, values):
    """Value(left) + value(right) + score(part) of an edge; the part behind the last one has the score 0."""
    x = load_wide(values, left[e] * lanes, scores) + widen(load(scores, part[e] * lanes))
    if len(right) > 0:
        x = x + load_wide(values, right[e] * lanes, scores)
    return x


@inner
def upward_maximum(first, left, right, part, top, lanes, scores, values, choices):
    """Values of nodes up to `top` as maxima; `choices[v * lanes]` is the first best edge of v."""
    nothing = splat_wide(-np.inf, scores)
    store(values, 0, splat_wide(0.0, scores))
    for v in range(1, top + 1):
        best, at = nothing, splat_index(nothing, -1)
        for e in range(first[v], first[v + 1]):
            x = term(left, right, part, e, lanes, scores, values)
            at = where_larger(x, best, splat_index(x, e), at)
            best = larger(x, best)
        store(values, v * lanes, best)
        store(choices, v * lanes, at)


@inner
def upward_sum(first, left, right, part, top, lanes, scores, values, weights, terms):
    """Values of nodes up to `top` as log-sums, weights p(edge | node) of their edges; `terms` has room for a node's edges."""
    nothing, zero = splat_wide(-np.inf, scores), splat_wide(0.0, scores)
    store(values, 0, zero)
    for v in range(1, top + 1):
        start, count = first[v], first[v + 1] - first[v]
        best = nothing
        for i in range(count):
            x = term(left, right, part, start + i, lanes, scores, values)
            best = larger(x, best)
            store(terms, i * lanes, x)
        finite = where_larger(best, nothing, best, zero)
        total = splat(scores, 0.0)
        for i in range(count):
            w = exp(narrow(load_wide(terms, i * lanes, scores) - finite, scores))
            total = total + w
            store(weights, (start + i) * lanes, w)
        one = splat(scores, 1.0)
        some = select_positive(total, total, one)
        inverse = one / some
        for i in range(count):
            store(weights, (start + i) * lanes, load(weights, (start + i) * lanes) * inverse)
        store(values, v * lanes, where_larger(best, nothing, finite + widen(log(some)), nothing))


@inner
def downward(first, left, right, part, top, lanes, weights, scores, reached, used):
    """Probabilities of nodes, from those of the goals, and of parts: `used[p * lanes]`; goals are 1 in `reached`."""
    zero = splat(scores, 0.0)
    for v in range(top, 0, -1):
        out = load(reached, v * lanes)
        for e in range(first[v], first[v + 1]):
            q = select_positive(out, out * load(weights, e * lanes), zero)
            store(used, part[e] * lanes, load(used, part[e] * lanes) + q)
            store(reached, left[e] * lanes, load(reached, left[e] * lanes) + q)
            if len(right) > 0:
                store(reached, right[e] * lanes, load(reached, right[e] * lanes) + q)


@inner
def tangent_of(left, right, e, lanes, tangents, scores):
    """Tangent(left) + tangent(right) of an edge."""
    d = load_wide(tangents, left[e] * lanes, scores)
    if len(right) > 0:
        d = d + load_wide(tangents, right[e] * lanes, scores)
    return d


@inner
def upward_tangent(first, left, right, part, top, lanes, weights, direction, scores, tangents):
    """The derivatives of values along a direction of the scores: expectations of it under p(edge | node).

    Weights in float32 do not quite add up to 1. Tangents grow with the size of a structure, and would feel that at every node.
    """
    zero, one = splat_wide(0.0, scores), splat_wide(1.0, scores)
    store(tangents, 0, zero)
    for v in range(1, top + 1):
        mean, total = zero, zero
        for e in range(first[v], first[v + 1]):
            w = widen(load(weights, e * lanes))
            d = tangent_of(left, right, e, lanes, tangents, scores)
            d = d + widen(load(direction, part[e] * lanes))
            mean, total = mean + select_positive(w, w * d, zero), total + select_positive(w, w, zero)
        store(tangents, v * lanes, select_positive(total, mean / select_positive(total, total, one), zero))


@inner
def upward_entropy(first, left, right, part, top, lanes, weights, scores, entropies):
    """The entropy of each node's derivations: the sum over its edges of p (H(left) + H(right) - log p)."""
    zero, one = splat_wide(0.0, scores), splat_wide(1.0, scores)
    store(entropies, 0, zero)
    for v in range(1, top + 1):
        mean, total = zero, zero
        for e in range(first[v], first[v + 1]):
            w = widen(load(weights, e * lanes))
            some = select_positive(w, w, splat_wide(1.0, scores))
            d = tangent_of(left, right, e, lanes, entropies, scores) - log(some)
            mean, total = mean + select_positive(w, w * d, zero), total + select_positive(w, w, zero)
        store(entropies, v * lanes, select_positive(total, mean / select_positive(total, total, one), zero))


@inner
def downward_tangent(graph, top, lanes, weights, direction, surprise, scores, tangents, reached, moved, used):
    """The derivatives of the parts' probabilities: the dual numbers of `downward`.

    Args:
        graph: its arrays, and `reach`.
        top: the last node.
        lanes: how many there are.
        weights: p(edge | node).
        direction: of the scores; the derivative is along it if `surprise` is false,
        surprise: and along -log p of each edge, whose tangents are entropies, if it is true.
        scores: for their dtype.
        tangents: of the nodes.
        reached: their probabilities, 1 at the goals.
        moved: the derivatives of those, 0 at the start.
        used: the derivatives of the parts' probabilities, to be added to.
    """
    first, left, right, part, _ = graph
    zero, one = splat_wide(0.0, scores), splat_wide(1.0, scores)
    for v in range(top, 0, -1):
        out, dout = load_wide(reached, v * lanes, scores), load_wide(moved, v * lanes, scores)
        own = load_wide(tangents, v * lanes, scores)
        for e in range(first[v], first[v + 1]):
            w = widen(load(weights, e * lanes))
            d = tangent_of(left, right, e, lanes, tangents, scores) - own
            if surprise:
                d = d - log(select_positive(w, w, one))
            else:
                d = d + widen(load(direction, part[e] * lanes))
            q = select_positive(out, select_positive(w, out * w, zero), zero)
            dq = select_positive(q, w * (dout + out * d), zero)
            store(used, part[e] * lanes, load_wide(used, part[e] * lanes, scores) + dq)
            store(reached, left[e] * lanes, load_wide(reached, left[e] * lanes, scores) + q)
            store(moved, left[e] * lanes, load_wide(moved, left[e] * lanes, scores) + dq)
            if len(right) > 0:
                store(reached, right[e] * lanes, load_wide(reached, right[e] * lanes, scores) + q)
                store(moved, right[e] * lanes, load_wide(moved, right[e] * lanes, scores) + dq)
