"""SparseMAP's oracle of a hypergraph, for one example: its arrays are options of the search."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pullback.inference._numba.scratch import carve, unchecked
from pullback.inference.engine.hypergraph.graph import Hypergraph
from pullback.inference.sparsemap.oracle import Oracle, Shape, fixed

NODES, EDGES, BINARY, FIRST, LEFT, RIGHT, PART, GOALS = range(8)


@intrinsic
def _array(typingctx, address, count, dtype):
    """The numbers at an address."""
    kind = types.Array(dtype.dtype, 1, "C")

    def generate(context, builder, signature, args):
        return unchecked(context, builder, kind, builder.inttoptr(args[0], ir.IntType(8).as_pointer()), args[1])

    return kind(types.int64, types.intp, dtype), generate


def best(scores, shape, sizes, options, work, parts):
    """The best structure: values of all nodes up to the goal, then its parts from the goal down."""
    nodes, edges, count = options[NODES], options[EDGES], len(scores)
    first, left = _array(options[FIRST], nodes + 1, types.int32), _array(options[LEFT], edges, types.int32)
    right, part = _array(options[RIGHT], edges, types.int32), _array(options[PART], edges, types.int32)
    goal = _array(options[GOALS], shape[0] + 1, types.int64)[sizes[0]]
    value, at = carve(work, 0, nodes, np.float64)
    choice, at = carve(work, at, nodes, np.int32)
    stack, at = carve(work, at, nodes + 1, np.int32)
    if goal < 0:
        return -1
    value[0] = 0.0
    for v in range(1, goal + 1):
        value[v], choice[v] = -np.inf, -1
        for e in range(first[v], first[v + 1]):
            x = value[left[e]]
            if part[e] < count:
                x += scores[part[e]]
            if options[BINARY] == 1:
                x += value[right[e]]
            if x > value[v]:
                value[v], choice[v] = x, e
    if not value[goal] > -np.inf:
        return -1
    stack[0], height, found = goal, 1, 0
    while height > 0:
        height -= 1
        v = stack[height]
        if v == 0:
            continue
        e = choice[v]
        if part[e] < count:
            parts[found] = part[e]
            found += 1
        stack[height] = left[e]
        height += 1
        if options[BINARY] == 1:
            stack[height] = right[e]
            height += 1
    return found


_SHARED = Oracle(best, work=lambda shape: 0)  # compiled once


class HypergraphOracle(Oracle):
    """The oracle of the hypergraphs of all shapes."""

    def __init__(self, graph: Callable[..., Hypergraph]) -> None:
        super().__init__(best, work=lambda shape: 16 * len(graph(shape).first) + 256)
        object.__setattr__(self, "_graph", graph)

    def of(self, options: tuple[Any, ...]) -> Oracle:
        graph: Callable[..., Hypergraph] = self._graph  # type: ignore[attr-defined]
        return HypergraphOracle(lambda shape: graph(shape, *options)) if options else self

    @functools.lru_cache(maxsize=64)  # noqa: B019 (as many as there are recursions)
    def fixed(self, shape: Shape, limits: Shape, options: tuple[int, ...]) -> tuple[list[int], Any]:
        graph: Hypergraph = self._graph(shape)  # type: ignore[attr-defined]
        arrays = *graph.arrays, graph.goals
        own = len(graph.first) - 1, len(graph.left), int(len(graph.right) > 0), *(array.ctypes.data for array in arrays)
        addresses = [each.address if each else 0 for each in _SHARED._compiled]
        table, kept = fixed(shape, limits, own, addresses, ())
        return table, (kept, arrays)
