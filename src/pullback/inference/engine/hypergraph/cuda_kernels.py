"""Triton kernels over a hypergraph: one program per example goes through the levels, all nodes of a level at once.

Between levels the program's threads wait for each other; what they share is in global memory.
Values are in float64, weights and probabilities in the precision of the scores. See levels.py for the arrays.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl

MAXIMUM, SUM, SAMPLE, SLOPE, SURPRISE = (constant(i) for i in range(5))
_LOWEST = constant(-1e300)


@jit(do_not_specialize=["levels", "nodes", "edges", "parts"])
def upward(
    scores, direction, seeds, values, rates, weights, shifts, plan, left, right, part,
    levels, nodes, edges, parts, MODE: tl.constexpr, BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Values of all nodes, and weights of all edges: p(edge | node), or 1 for the chosen edge and 0 for the others.

    In the modes SLOPE and SURPRISE also rates, the derivatives of the values along `direction` or along -log p (then they are
    entropies), and shifts, the derivatives of the weights.
    """
    b = tl.program_id(0).to(tl.int64)
    scores += b * parts
    direction += b * parts
    values += b * (nodes + 1)
    rates += b * (nodes + 1)
    weights += b * (edges + 1)
    shifts += b * (edges + 1)
    tl.store(values, 0.0)
    tl.store(values + nodes, -float("inf"))
    tl.store(weights + edges, 0.0)
    if MODE >= SLOPE:
        tl.store(rates, 0.0)
        tl.store(rates + nodes, 0.0)
        tl.store(shifts + edges, 0.0)
    tl.debug_barrier()
    for level in range(1, levels):
        row = plan + 5 * level
        begin, first, degree = tl.load(row), tl.load(row + 1), tl.load(row + 2)
        end = tl.load(row + 5)
        for chunk in range(begin, end, NODES):
            v = chunk + tl.arange(0, NODES)
            start = first + (v - begin) * degree
            inside = v < end
            best = tl.full([NODES], -float("inf"), tl.float64)
            bad = tl.zeros([NODES], tl.int32)
            for offset in range(0, degree, EDGES):
                x = _terms(scores, values, left, right, part, start, offset, degree, inside, nodes, parts, BINARY, NODES, EDGES)
                best = tl.maximum(best, tl.max(x, 1))
                bad = tl.maximum(bad, tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 1))
            finite = tl.where(best > _LOWEST, best, 0.0)
            total, rate = _totals(
                scores, direction, values, rates, weights, left, right, part, start, degree, inside, finite,
                nodes, parts, MODE, BINARY, NODES, EDGES,
            )  # fmt: skip
            value = tl.where(best > _LOWEST, finite + (tl.log(total) if MODE != MAXIMUM else 0.0), -float("inf"))
            value = tl.where(bad > 0, float("nan"), value)
            tl.store(values + v, value, inside)
            if MODE >= SLOPE:
                tl.store(rates + v, rate, inside)
            u = tl.zeros([NODES], tl.float64)
            if MODE == SAMPLE:
                u = uniform(tl.load(seeds + b), v) * total
            _weigh(
                scores, direction, values, rates, weights, shifts, left, right, part, start, degree, inside,
                finite, total, rate, u, nodes, parts, MODE, BINARY, NODES, EDGES,
            )  # fmt: skip
        tl.debug_barrier()


@jit()
def _places(start, offset, degree, inside, EDGES: tl.constexpr):
    place = offset + tl.arange(0, EDGES)
    return start[:, None] + place[None, :], inside[:, None] & (place < degree)[None, :]


@jit()
def _terms(
    scores, values, left, right, part, start, offset, degree, inside, nodes, parts,
    BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Value(left) + value(right) + score(part) of a block of edges, float64."""
    e, real = _places(start, offset, degree, inside, EDGES)
    x = tl.load(values + tl.load(left + e, real, nodes), real, -float("inf"))
    if BINARY:
        x += tl.load(values + tl.load(right + e, real, nodes), real, -float("inf"))
    p = tl.load(part + e, real, parts)
    return x + tl.load(scores + p, real & (p < parts), 0.0).to(tl.float64)


@jit()
def _totals(
    scores, direction, values, rates, weights, left, right, part, start, degree, inside, finite, nodes, parts,
    MODE: tl.constexpr, BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """The sum of exp(x - best) over each node's edges, and the mean rate of its edges."""
    total = tl.zeros([NODES], tl.float64)
    rate = tl.zeros([NODES], tl.float64)
    if MODE != MAXIMUM:
        for offset in range(0, degree, EDGES):
            x = _terms(scores, values, left, right, part, start, offset, degree, inside, nodes, parts, BINARY, NODES, EDGES)
            w = _exp(x - finite[:, None], weights)
            total += tl.sum(w, 1)
            if MODE >= SLOPE:
                d = _rates(
                    direction, rates, left, right, part, start, offset, degree, inside, nodes, parts, MODE, BINARY, EDGES
                )
                if MODE == SURPRISE:
                    d -= x - finite[:, None]
                rate += tl.sum(tl.where(w > 0, w * d, 0.0), 1)
    total = tl.where(total > 0, total, 1.0)
    rate = rate / total
    if MODE == SURPRISE:
        rate += tl.log(total)
    return total, rate


@jit()
def _rates(
    direction, rates, left, right, part, start, offset, degree, inside, nodes, parts,
    MODE: tl.constexpr, BINARY: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    e, real = _places(start, offset, degree, inside, EDGES)
    d = tl.load(rates + tl.load(left + e, real, nodes), real, 0.0)
    if BINARY:
        d += tl.load(rates + tl.load(right + e, real, nodes), real, 0.0)
    if MODE == SLOPE:
        p = tl.load(part + e, real, parts)
        d += tl.load(direction + p, real & (p < parts), 0.0).to(tl.float64)
    return d


@jit()
def _exp(x, like):
    """The exponential in the precision of the weights, as float64."""
    return tl.exp(x.to(like.dtype.element_ty)).to(tl.float64)


@jit()
def _weigh(
    scores, direction, values, rates, weights, shifts, left, right, part, start, degree, inside, finite, total, rate, u,
    nodes, parts, MODE: tl.constexpr, BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Write the weights of the nodes' edges, and their derivatives."""
    taken = tl.zeros([NODES], tl.int32)
    before = tl.zeros([NODES], tl.float64)
    for offset in range(0, degree, EDGES):
        x = _terms(scores, values, left, right, part, start, offset, degree, inside, nodes, parts, BINARY, NODES, EDGES)
        e, real = _places(start, offset, degree, inside, EDGES)
        if MODE == MAXIMUM:
            hit = (x == finite[:, None]) & real
        elif MODE == SAMPLE:
            w = _exp(x - finite[:, None], weights)
            upto = before[:, None] + tl.cumsum(w, 1)
            before += tl.sum(w, 1)
            hit = (upto > u[:, None]) & (w > 0) & real
        if MODE == MAXIMUM or MODE == SAMPLE:  # noqa: SIM109 (Triton)
            earlier = tl.cumsum(hit.to(tl.int32), 1) - hit.to(tl.int32)
            chosen = hit & (earlier == 0) & (taken == 0)[:, None]
            taken += tl.sum(chosen.to(tl.int32), 1)
            tl.store(weights + e, chosen.to(weights.dtype.element_ty), real)
        else:
            w = _exp(x - finite[:, None], weights) / total[:, None]
            tl.store(weights + e, w.to(weights.dtype.element_ty), real)
            if MODE >= SLOPE:
                d = _rates(
                    direction, rates, left, right, part, start, offset, degree, inside, nodes, parts, MODE, BINARY, EDGES
                )
                if MODE == SURPRISE:
                    d += tl.log(total)[:, None] - (x - finite[:, None])
                shift = tl.where(w > 0, w * (d - rate[:, None]), 0.0)
                tl.store(shifts + e, shift.to(weights.dtype.element_ty), real)


@jit()
def uniform(seed, counter):
    """Numbers in [0, 1) from a seed and counters: splitmix64, as inference/front/random.py has it."""
    x = seed.to(tl.uint64, bitcast=True) + (counter.to(tl.uint64) + 1) * 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return ((x ^ (x >> 31)) >> 11).to(tl.float64) * 1.1102230246251565e-16


@jit(do_not_specialize=["levels", "nodes", "edges", "first_limit", "second_limit"])
def downward(
    values, weights, shifts, reached, moved, goal_of, goals, sizes, other_sizes, plan, use_edge, use_node,
    levels, nodes, edges, first_limit, second_limit,
    TWO: tl.constexpr, DUAL: tl.constexpr, NODES: tl.constexpr, USES: tl.constexpr,
):  # fmt: skip
    """Probabilities of all nodes from that of the goal, and their derivatives; each node adds up what its uses pass on."""
    b = tl.program_id(0).to(tl.int64)
    goal = _goal(goals, sizes, other_sizes, b, first_limit, second_limit, TWO)
    tl.store(goal_of + b, goal)
    values += b * (nodes + 1)
    weights += b * (edges + 1)
    shifts += b * (edges + 1)
    reached += b * (nodes + 1)
    moved += b * (nodes + 1)
    tl.store(reached + nodes, 0.0)
    if DUAL:
        tl.store(moved + nodes, 0.0)
    tl.debug_barrier()
    for back in range(1, levels):
        row = plan + 5 * (levels - back)
        begin, first, degree = tl.load(row), tl.load(row + 3), tl.load(row + 4)
        end = tl.load(row + 5)
        for chunk in range(begin, end, NODES):
            v = chunk + tl.arange(0, NODES)
            start = first + (v - begin) * degree
            inside = v < end
            out = (v == goal).to(tl.float64)
            dout = tl.zeros([NODES], tl.float64)
            for offset in range(0, degree, USES):
                place, real = _places(start, offset, degree, inside, USES)
                e = tl.load(use_edge + place, real, edges)
                parent = tl.load(use_node + place, real, nodes)
                q, dq = _passed(weights, shifts, reached, moved, e, parent, edges, DUAL)
                out += tl.sum(q, 1)
                dout += tl.sum(dq, 1)
            tl.store(reached + v, out.to(reached.dtype.element_ty), inside)
            if DUAL:
                tl.store(moved + v, dout.to(reached.dtype.element_ty), inside)
        tl.debug_barrier()


@jit()
def _goal(goals, sizes, other_sizes, b, first_limit, second_limit, TWO: tl.constexpr):
    """The goal node of an example, -1 if it has none."""
    size = tl.load(sizes + b)
    fine = (size >= 0) & (size <= first_limit)
    place = size
    if TWO:
        other = tl.load(other_sizes + b)
        fine = fine & (other >= 0) & (other <= second_limit)
        place = size * (second_limit + 1) + other
    return tl.load(goals + tl.where(fine, place, 0)) * fine.to(tl.int32) - 1 + fine.to(tl.int32)


@jit()
def _passed(weights, shifts, reached, moved, e, parent, edges, DUAL: tl.constexpr):
    """What edges pass on of their nodes' probabilities, and its derivative; nothing from nodes that are not reached.

    The edge `edges + 1` stands for all edges of its node.
    """
    out = tl.load(reached + parent).to(tl.float64)
    w = tl.load(weights + e, e <= edges, 1.0).to(tl.float64)
    used = (out > 0) & (w > 0)
    q = tl.where(used, out * w, 0.0)
    dq = q * 0.0
    if DUAL:
        dq = tl.where(used, tl.load(moved + parent).to(tl.float64) * w + out * tl.load(shifts + e, e <= edges, 0.0), 0.0)
    return q, dq


@jit(do_not_specialize=["nodes", "edges", "parts", "most"])
def gather(
    values, weights, shifts, reached, moved, goal_of, part_edge, part_node, out,
    nodes, edges, parts, most, DUAL: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The probabilities of parts, or their derivatives: sums over the edges that have them. NaN where there is no structure."""
    blocks = tl.cdiv(parts, PARTS)
    b = (tl.program_id(0) // blocks).to(tl.int64)
    p = (tl.program_id(0) % blocks) * PARTS + tl.arange(0, PARTS)
    goal = tl.load(goal_of + b)
    value = tl.load(values + b * (nodes + 1) + tl.maximum(goal, 0))
    fine = (goal >= 0) & (value > _LOWEST) & (value < -_LOWEST)
    found = collect(
        weights + b * (edges + 1), shifts + b * (edges + 1), reached + b * (nodes + 1), moved + b * (nodes + 1),
        part_edge, part_node, p, fine, nodes, edges, parts, most, DUAL, PARTS,
    )  # fmt: skip
    tl.store(out + b * parts + p, found.to(out.dtype.element_ty), p < parts)


@jit()
def collect(
    weights, shifts, reached, moved, part_edge, part_node, p, fine, nodes, edges, parts, most,
    DUAL: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """What the parts p of an example get, NaN if it is not fine."""
    inside = p < parts
    found = tl.zeros([PARTS], tl.float64)
    for i in range(most):
        e = tl.load(part_edge + p * most + i, inside, edges)
        parent = tl.load(part_node + p * most + i, inside, nodes)
        q, dq = _passed(weights, shifts, reached, moved, e, parent, edges, DUAL)
        found += dq if DUAL else q
    return tl.where(fine, found, float("nan"))


@jit(do_not_specialize=["nodes", "first_limit", "second_limit"])
def read_goal(values, goals, sizes, other_sizes, rates, out, nodes, first_limit, second_limit, TWO: tl.constexpr):
    """The rate of the goal of each example, NaN where there is no structure."""
    b = tl.program_id(0).to(tl.int64)
    goal = _goal(goals, sizes, other_sizes, b, first_limit, second_limit, TWO)
    value = tl.load(values + b * (nodes + 1) + tl.maximum(goal, 0))
    fine = (goal >= 0) & (value > _LOWEST) & (value < -_LOWEST)
    tl.store(out + b, tl.where(fine, tl.load(rates + b * (nodes + 1) + tl.maximum(goal, 0)), float("nan")))
