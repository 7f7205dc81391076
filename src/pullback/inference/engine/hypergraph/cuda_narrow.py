"""The kernels of cuda_kernels.py for hypergraphs whose levels fit into one tile: what the next level needs is read ahead.

A level is then bound by one dependent read: that of the values below it.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.engine.hypergraph.cuda_kernels import MAXIMUM, SAMPLE, SLOPE, SURPRISE, _goal, collect, uniform

_LOWEST = constant(-1e300)


@jit(do_not_specialize=["levels", "nodes", "edges", "parts"])
def upward(
    scores, direction, seeds, values, rates, weights, shifts, plan, left, right, part,
    levels, nodes, edges, parts, MODE: tl.constexpr, BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """As `cuda_kernels.upward`."""
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
    v, e, inside, real, child, other, s, along = _ahead(
        scores, direction, plan, left, right, part, 1, nodes, parts, MODE, BINARY, NODES, EDGES
    )
    for level in range(1, levels):
        x = tl.load(values + child) + s
        rate_of = s
        if MODE >= SLOPE:
            rate_of = tl.load(rates + child) + along
        if BINARY:
            x += tl.load(values + other)
            if MODE >= SLOPE:
                rate_of += tl.load(rates + other)
        next_v, next_e, next_inside, next_real, next_child, next_other, next_s, next_along = _ahead(
            scores, direction, plan, left, right, part, level + 1, nodes, parts, MODE, BINARY, NODES, EDGES
        )
        bad = tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 1)
        x = tl.where(x != x, -float("inf"), x)
        if MODE == MAXIMUM:
            best, at = tl.max(x, 1, return_indices=True, return_indices_tie_break_left=True)
            chosen = tl.arange(0, EDGES)[None, :] == at[:, None]
            tl.store(weights + e, chosen.to(weights.dtype.element_ty), real)
            value = best
        else:
            best = tl.max(x, 1)
            finite = tl.where(best > _LOWEST, best, 0.0)
            lower = x - finite[:, None]
            w = tl.exp(lower.to(weights.dtype.element_ty))
            total = tl.sum(w, 1)
            total = tl.where(total > 0, total, 1.0)
            nats = tl.log(total).to(tl.float64)
            value = tl.where(best > _LOWEST, finite + nats, -float("inf"))
            if MODE == SAMPLE:
                # Below the largest of these sums, whatever rounding does: an edge is always chosen.
                upto = tl.where(w > 0, tl.cumsum(w.to(tl.float64), 1), 0.0)
                u = uniform(tl.load(seeds + b), v) * tl.max(upto, 1)
                later = upto > u[:, None]
                at = tl.argmax(later.to(tl.int32), 1, tie_break_left=True)
                chosen = (tl.arange(0, EDGES)[None, :] == at[:, None]) & later
                tl.store(weights + e, chosen.to(weights.dtype.element_ty), real)
            else:
                w = w * (1.0 / total)[:, None]
                tl.store(weights + e, w, real)
            if MODE >= SLOPE:
                if MODE == SURPRISE:
                    rate_of += nats[:, None] - lower
                wide = w.to(tl.float64)
                sum_of = tl.sum(wide, 1)  # not quite 1, which rates would feel that grow from level to level
                rate = tl.sum(tl.where(w > 0, wide * rate_of, 0.0), 1) / tl.where(sum_of > 0, sum_of, 1.0)
                tl.store(rates + v, rate, inside)
                shift = tl.where(w > 0, wide * (rate_of - rate[:, None]), 0.0)
                tl.store(shifts + e, shift.to(weights.dtype.element_ty), real)
        tl.store(values + v, tl.where(bad > 0, float("nan"), value), inside)
        tl.debug_barrier()
        v, e, inside, real = next_v, next_e, next_inside, next_real
        child, other, s, along = next_child, next_other, next_s, next_along


@jit(do_not_specialize=["levels", "nodes", "edges", "parts", "most", "first_limit", "second_limit"])
def through(
    scores, direction, seeds, scratch, out, log_z, sizes, other_sizes, plan, left, right, part, goals,
    use_edge, use_node, part_edge, part_node, levels, nodes, edges, parts, most, first_limit, second_limit,
    MODE: tl.constexpr, TWO: tl.constexpr, BINARY: tl.constexpr,
    NODES: tl.constexpr, EDGES: tl.constexpr, USES: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """`upward`, `_downward` and what each part gets, in one launch; the goals' values, too, NaN where there is no structure.

    `scratch` has room for 2 (nodes + 1) + edges + 2 numbers in float64 for each example, about twice that for derivatives:
    the first of each are left alone, and may be `log_z` where that is not wanted.
    """
    count = tl.num_programs(0).to(tl.int64)
    scratch += count
    kind = tl.pointer_type(out.dtype.element_ty)
    values, reached = scratch, (scratch + count * (nodes + 1)).to(kind)
    weights = (scratch + 2 * count * (nodes + 1)).to(kind)
    rates, moved, shifts = values, reached, weights
    if MODE >= SLOPE:
        scratch += count * (2 * nodes + edges + 3)
        rates, moved = scratch, (scratch + count * (nodes + 1)).to(kind)
        shifts = (scratch + 2 * count * (nodes + 1)).to(kind)
    upward(
        scores, direction, seeds, values, rates, weights, shifts, plan, left, right, part,
        levels, nodes, edges, parts, MODE, BINARY, NODES, EDGES,
    )  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    goal = _goal(goals, sizes, other_sizes, b, first_limit, second_limit, TWO)
    value = tl.load(values + b * (nodes + 1) + tl.maximum(goal, 0))
    fine = (goal >= 0) & (value > _LOWEST) & (value < -_LOWEST)
    tl.store(log_z + b, tl.where(fine, value, float("nan")))
    weights += b * (edges + 1)
    shifts += b * (edges + 1)
    reached += b * (nodes + 1)
    moved += b * (nodes + 1)
    _downward(weights, shifts, reached, moved, goal, plan, use_edge, use_node, levels, nodes, edges, MODE >= SLOPE, NODES, USES)
    for start in range(0, parts, PARTS):
        p = start + tl.arange(0, PARTS)
        found = collect(
            weights, shifts, reached, moved, part_edge, part_node, p, fine, nodes, edges, parts, most, MODE >= SLOPE, PARTS
        )
        tl.store(out + b * parts + p, found.to(out.dtype.element_ty), p < parts)


@jit()
def _ahead(
    scores, direction, plan, left, right, part, level, nodes, parts,
    MODE: tl.constexpr, BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """What is known of a level's edges before the level below it is done: nodes, places, children, scores, directions."""
    row = plan + 5 * level
    begin, first, degree, end = tl.load(row), tl.load(row + 1), tl.load(row + 2), tl.load(row + 5)
    v = begin + tl.arange(0, NODES)
    place = tl.arange(0, EDGES)
    inside = v < end
    real = inside[:, None] & (place < degree)[None, :]
    e = (first + (v - begin) * degree)[:, None] + place[None, :]
    child = tl.load(left + e, real, nodes)
    other = child
    if BINARY:
        other = tl.load(right + e, real, nodes)
    p = tl.load(part + e, real, parts)
    s = tl.load(scores + p, real & (p < parts), 0.0).to(tl.float64)
    along = s
    if MODE == SLOPE:
        along = tl.load(direction + p, real & (p < parts), 0.0).to(tl.float64)
    elif MODE == SURPRISE:
        along = tl.zeros([NODES, EDGES], tl.float64)
    return v, e, inside, real, child, other, s, along


@jit()
def _downward(
    weights, shifts, reached, moved, goal, plan, use_edge, use_node, levels, nodes, edges,
    DUAL: tl.constexpr, NODES: tl.constexpr, USES: tl.constexpr,
):  # fmt: skip
    """As `cuda_kernels.downward`, for one example."""
    tl.store(reached + nodes, 0.0)
    if DUAL:
        tl.store(moved + nodes, 0.0)
    tl.debug_barrier()
    v, inside, parent, w, dw = _uses(weights, shifts, plan, use_edge, use_node, levels - 1, nodes, edges, DUAL, NODES, USES)
    for back in range(1, levels):
        out = tl.load(reached + parent).to(tl.float64)
        dout = out
        if DUAL:
            dout = tl.load(moved + parent).to(tl.float64)
        next_v, next_inside, next_parent, next_w, next_dw = _uses(
            weights, shifts, plan, use_edge, use_node, levels - 1 - back, nodes, edges, DUAL, NODES, USES
        )
        used = (out > 0) & (w > 0)
        q = tl.sum(tl.where(used, out * w, 0.0), 1) + (v == goal).to(tl.float64)
        tl.store(reached + v, q.to(reached.dtype.element_ty), inside)
        if DUAL:
            dq = tl.sum(tl.where(used, dout * w + out * dw, 0.0), 1)
            tl.store(moved + v, dq.to(reached.dtype.element_ty), inside)
        tl.debug_barrier()
        v, inside, parent, w, dw = next_v, next_inside, next_parent, next_w, next_dw


@jit()
def _uses(
    weights, shifts, plan, use_edge, use_node, level, nodes, edges,
    DUAL: tl.constexpr, NODES: tl.constexpr, USES: tl.constexpr,
):  # fmt: skip
    """What is known of the uses of a level's nodes before the level above it is done: nodes, parents, weights, shifts."""
    row = plan + 5 * level
    begin, first, degree, end = tl.load(row), tl.load(row + 3), tl.load(row + 4), tl.load(row + 5)
    v = begin + tl.arange(0, NODES)
    place = tl.arange(0, USES)
    inside = v < end
    real = inside[:, None] & (place < degree)[None, :]
    at = (first + (v - begin) * degree)[:, None] + place[None, :]
    e = tl.load(use_edge + at, real, edges)
    parent = tl.load(use_node + at, real, nodes)
    w = tl.load(weights + e).to(tl.float64)
    dw = w
    if DUAL:
        dw = tl.load(shifts + e).to(tl.float64)
    return v, inside, parent, w, dw
