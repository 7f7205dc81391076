"""The best derivation of a hypergraph whose levels fit into one tile, in Triton: one program per example, one launch.

Upwards each node chooses an edge; downwards a level's nodes that are in use mark the children of their edges.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.engine.hypergraph.cuda_kernels import MAXIMUM, _goal
from pullback.inference.engine.hypergraph.cuda_narrow import _ahead

_LOWEST = constant(-1e300)


@jit(do_not_specialize=["levels", "nodes", "edges", "parts", "first_limit", "second_limit"])
def argmax(
    scores, out, scratch, plan, left, right, part, goals, sizes, other_sizes,
    levels, nodes, edges, parts, first_limit, second_limit,
    TWO: tl.constexpr, BINARY: tl.constexpr, NODES: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Write 1 for the parts of the best derivation, 0 for others; NaN where there is none.

    Args:
        scores: `[B, parts]`.
        out: `[B, parts]`, to write.
        scratch: `[B, 2 nodes + 2]`, float64.
        plan: and the next five: see levels.py.
        left: children.
        right: children.
        part: of each edge.
        goals: of each size.
        sizes: `[B]`.
        other_sizes: `[B]`, if there are TWO.
        levels: how many there are.
        nodes: likewise.
        edges: likewise.
        parts: likewise.
        first_limit: the largest size.
        second_limit: the largest other size.
        TWO: whether there are two sizes.
        BINARY: whether edges have two children.
        NODES: of a level, at most.
        EDGES: of a node, at most.
    """
    b = tl.program_id(0).to(tl.int64)
    scores += b * parts
    out += b * parts
    values = scratch + b * (2 * nodes + 2)
    chosen = (values + nodes + 1).to(tl.pointer_type(tl.int32))
    marks = chosen + nodes + 1
    fill(out, parts, 0.0, NODES * EDGES)
    fill(marks, nodes + 1, 0, NODES * EDGES)
    tl.store(values, 0.0)
    tl.store(values + nodes, -float("inf"))
    tl.debug_barrier()
    v, e, inside, _, child, other, s, _ = _ahead(
        scores, scores, plan, left, right, part, 1, nodes, parts, MAXIMUM, BINARY, NODES, EDGES
    )
    for level in range(1, levels):
        x = tl.load(values + child) + s
        if BINARY:
            x += tl.load(values + other)
        next_v, next_e, next_inside, _, next_child, next_other, next_s, _ = _ahead(
            scores, scores, plan, left, right, part, level + 1, nodes, parts, MAXIMUM, BINARY, NODES, EDGES
        )
        bad = tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 1)
        best, at = tl.max(tl.where(x != x, -float("inf"), x), 1, return_indices=True, return_indices_tie_break_left=True)
        tl.store(values + v, tl.where(bad > 0, float("nan"), best), inside)
        tl.store(chosen + v, tl.min(e, 1) + at, inside)
        tl.debug_barrier()
        v, e, inside = next_v, next_e, next_inside
        child, other, s = next_child, next_other, next_s
    goal = _goal(goals, sizes, other_sizes, b, first_limit, second_limit, TWO)
    value = tl.load(values + tl.maximum(goal, 0))
    if (goal >= 0) & (value > _LOWEST) & (value < -_LOWEST):
        tl.store(marks + goal, 1)
        tl.debug_barrier()
        _mark(out, chosen, marks, plan, left, right, part, levels, nodes, parts, BINARY, NODES)
    else:
        fill(out, parts, float("nan"), NODES * EDGES)


@jit()
def _mark(out, chosen, marks, plan, left, right, part, levels, nodes, parts, BINARY: tl.constexpr, NODES: tl.constexpr):
    """From the goal downwards, write the parts of the edges that nodes in use have chosen."""
    v, inside, child, other, p = _choices(chosen, plan, left, right, part, levels - 1, nodes, parts, BINARY, NODES)
    for back in range(1, levels):
        used = tl.load(marks + v, inside, 0) > 0
        next_v, next_inside, next_child, next_other, next_p = _choices(
            chosen, plan, left, right, part, levels - 1 - back, nodes, parts, BINARY, NODES
        )
        tl.store(marks + child, tl.full([NODES], 1, tl.int32), used)
        if BINARY:
            tl.store(marks + other, tl.full([NODES], 1, tl.int32), used)
        tl.store(out + p, tl.full([NODES], 1.0, out.dtype.element_ty), used & (p < parts))
        tl.debug_barrier()
        v, inside, child, other, p = next_v, next_inside, next_child, next_other, next_p


@jit()
def _choices(
    chosen, plan, left, right, part, level, nodes, parts, BINARY: tl.constexpr, NODES: tl.constexpr
):  # fmt: skip
    """The nodes of a level, and the children and the part of the edge that each has chosen."""
    row = plan + 5 * level
    begin, end = tl.load(row), tl.load(row + 5)
    v = begin + tl.arange(0, NODES)
    inside = (v < end) & (level > 0)
    e = tl.load(chosen + v, inside, 0)
    child = tl.load(left + e, inside, nodes)
    other = child
    if BINARY:
        other = tl.load(right + e, inside, nodes)
    return v, inside, child, other, tl.load(part + e, inside, parts)


@jit()
def fill(target, count, value, BLOCK: tl.constexpr):
    """Write a value to the first `count` places."""
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(target + at, tl.full([BLOCK], value, target.dtype.element_ty), at < count)
