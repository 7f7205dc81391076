"""The state of a projection onto a flow polytope: the graph's edges and nodes, and a factor of its Laplacian."""

from __future__ import annotations

import functools

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference._numba.records import Arrangement, Record, Shapes
from pullback.inference.sparsemap.skyline import factor, outline, solve

FlowState = Record(
    "FlowState",
    tails=(np.int32, 1),  # [K]: the node that an edge leaves, -1 where an entry is no part; in ascending order
    heads=(np.int32, 1),
    scores=(np.float64, 1),  # [K]: of parts; later of edges, reduced by the potentials of the nodes
    flows=(np.float64, 1),  # [K]: of edges
    parts=(np.int32, 1),  # [K]: of edges
    step=(np.float64, 1),  # [N]: of potentials
    excess=(np.float64, 1),  # [N]: what flows into a node less what flows out of it
    values=(np.float64, 1),  # [N]: of best paths
    rank=(np.int32, 1),  # [N]: of the nodes in the linear system, or -1
    firsts=(np.int64, 1),  # [N]: see skyline.py
    starts=(np.int64, 1),  # [N + 1]
    right=(np.float64, 1),  # [N]
    base=(np.float64, 1),
)
flow_state_of = FlowState.reader


@functools.lru_cache(maxsize=64)
def flow_plan(parts: int, nodes: int, reach: int) -> Arrangement:
    """A state for `parts` parts and `nodes` nodes, of which an edge joins two that are at most `reach` apart."""
    shapes: Shapes = dict.fromkeys(["tails", "heads", "scores", "flows", "parts"], (parts,))
    shapes |= dict.fromkeys(["step", "excess", "values", "rank", "firsts", "right"], (nodes,))
    return Arrangement(FlowState, shapes | {"starts": (nodes + 1,), "base": (nodes * (min(reach, nodes) + 1),)})


@called
def assemble(state, count, nodes, shift):
    """Factor the Laplacian of the edges with a flow, plus a shift; the last node is grounded. Returns its size."""
    size = _rank(state.tails, state.heads, state.flows, state.excess, count, nodes, state.rank, state.firsts)
    entries = outline(state.firsts, state.starts, size)
    edges, rows = (state.tails, state.heads, state.flows, count), (state.rank, state.firsts, state.starts, size, entries)
    _fill(*edges, *rows, shift, state.base)
    factor(state.base, state.firsts, state.starts, size)
    return size


@called
def _rank(tails, heads, flows, excess, count, nodes, rank, firsts):
    """Number the nodes with a flow or an excess, and find the first neighbour of each."""
    for node in range(nodes):
        rank[node] = 0 if excess[node] != 0.0 else -1
    for e in range(count):
        if flows[e] > 0.0:
            rank[tails[e]] = rank[heads[e]] = 0
    rank[nodes - 1], size = -1, 0
    for node in range(nodes):
        if rank[node] == 0:
            rank[node], firsts[size] = size, size
            size += 1
    for e in range(count):
        i = rank[heads[e]]
        if flows[e] > 0.0 and i >= 0:
            firsts[i] = min(firsts[i], rank[tails[e]])
    return size


@called
def _fill(tails, heads, flows, count, rank, firsts, starts, size, entries, shift, base):
    base[:entries] = 0.0
    for i in range(size):
        base[starts[i + 1] - 1] = shift
    for e in range(count):
        if flows[e] > 0.0:
            i, j = rank[heads[e]], rank[tails[e]]
            base[starts[j + 1] - 1] += 1.0
            if i >= 0:
                base[starts[i + 1] - 1] += 1.0
                base[starts[i] + j - firsts[i]] -= 1.0


@called
def lift(state, nodes, size):
    """Solve the linear system for the excess of nodes; the step of nodes outside of it is zero."""
    for node in range(nodes):
        if state.rank[node] >= 0:
            state.right[state.rank[node]] = state.excess[node]
    solve(state.base, state.firsts, state.starts, size, state.right)
    for node in range(nodes):
        state.step[node] = state.right[state.rank[node]] if state.rank[node] >= 0 else 0.0


@called
def balance(state, count, nodes, source):
    """Write the excess of each node, of which the first has a source, and return the largest, but for the last node's."""
    state.excess[:nodes] = 0.0
    state.excess[0] = source
    _add_flows(state.tails, state.heads, state.flows, count, state.excess)
    state.excess[nodes - 1], worst = 0.0, 0.0
    for node in range(nodes):
        worst = max(worst, abs(state.excess[node]))
    return worst


@called
def _add_flows(tails, heads, flows, count, excess):
    for e in range(count):
        excess[tails[e]] -= flows[e]
        excess[heads[e]] += flows[e]
