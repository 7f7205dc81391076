"""From what a tape has recorded to a hypergraph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import inner, kernel
from pullback.inference.engine.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.engine.hypergraph.traced import FIRST_PART, NOTHING, Tape, recording

Recursion = Callable[[Tensor, Any], Tensor]
"""From scores `[1, *parts]` and `combine` to one value for each size, or for one."""


def trace(recursion: Recursion, parts: tuple[int, ...], owner: str) -> tuple[Hypergraph, tuple[int, ...]]:
    """The hypergraph of a recursion over scores of one shape, with flat goals, and the shape of what the recursion returns."""
    tape = Tape(parts, owner)
    with recording(tape), torch.inference_mode(False), torch.no_grad(), torch.device("cpu"):  # not the default device
        try:
            total = recursion(tape.scores(), tape.combine)
        except RecursionError:
            raise ValueError(f"{owner} calls itself without end: a recursion must not have cycles") from None
        if not isinstance(total, Tensor):
            raise TypeError(f"{owner} returns a {type(total).__name__}; it must return a tensor of combined values")
        shape = tuple(total.shape)
        with torch._C.DisableTorchFunctionSubclass():
            goals = tape.numbers(total).flatten().numpy()
    return _build(tape, goals), shape


def _build(tape: Tape, goals: np.ndarray) -> Hypergraph:
    parts = math.prod(tape.parts)
    counts, operands_of = ([block.shape[i] for block in tape.blocks] for i in (0, 1))
    widths = np.repeat(np.array([0, *operands_of]), np.array([1, *counts]))
    combined = np.repeat(np.array(tape.combined, np.bool_), np.array(counts, np.int64))
    operands = np.concatenate([np.zeros(0, np.int64), *(b.ravel() for b in tape.blocks)])
    begin = np.cumsum(widths)
    elements = np.zeros((tape.count, 4), np.int32)  # left, right, part, and the node that holds this sum, if there is one
    elements[:, 2:] = parts, 0
    elements[NOTHING, 0] = -1
    elements[FIRST_PART : FIRST_PART + parts, 2] = np.arange(parts)
    room = len(combined) + len(goals) + parts + 2
    edges = np.empty((len(operands) + room, 4), np.int32)
    nodes, count = _resolve(begin, combined, operands, parts, elements, edges, goals)
    return _in_order(nodes, edges[:count], goals, parts)


@inner
def _is_one(element, parts):
    """Whether an element is a node, or nothing but the axiom."""
    return element[1] == 0 and element[2] == parts


@inner
def _hold(elements, x, edges, nodes, count):
    """Make a node of a sum, once: afterwards `elements[x, 3]` is its number."""
    if elements[x, 3] == 0:
        edges[count, 0] = nodes
        edges[count, 1:] = elements[x, :3]
        elements[x, 3] = nodes
        return nodes + 1, count + 1
    return nodes, count


@inner
def _size(elements, x, held, parts):
    """How many nodes and parts a summand has, as it is or as a node."""
    if held:
        return 1, 0
    return int(elements[x, 0] > 0) + int(elements[x, 1] > 0), int(elements[x, 2] < parts)


@inner
def _put(elements, y, x, held, parts):
    """Add a summand to a sum that has room for it."""
    for i in range(2):
        child = elements[x, i]
        if held:
            child = elements[x, 3] if i == 0 else 0
        if child > 0:
            elements[y, 0 if elements[y, 0] == 0 else 1] = child
    if not held and elements[x, 2] < parts:
        elements[y, 2] = elements[x, 2]


@inner
def _fit(elements, a, b, hold_a, hold_b, parts):
    nodes_a, parts_a = _size(elements, a, hold_a, parts)
    nodes_b, parts_b = _size(elements, b, hold_b, parts)
    return nodes_a + nodes_b <= 2 and parts_a + parts_b <= 1


@kernel
def _resolve(begin, combined, operands, parts, elements, edges, goals):
    """Write edges (parent, left, right, part), and the goals' nodes: a sum is an edge, or a chain of edges if it is long."""
    nodes, count = 1, 0
    for i in range(len(combined)):
        y = 2 + parts + i
        if combined[i]:
            live, only = 0, 0
            for at in range(begin[i], begin[i + 1]):
                if elements[operands[at], 0] >= 0:
                    live, only = live + 1, operands[at]
            if live == 0:
                elements[y, 0] = -1
            elif live == 1 and _is_one(elements[only], parts):
                elements[y, 0] = elements[only, 0]
            else:
                for at in range(begin[i], begin[i + 1]):
                    if elements[operands[at], 0] >= 0:
                        edges[count, 0] = nodes
                        edges[count, 1:] = elements[operands[at], :3]
                        count += 1
                elements[y, 0] = nodes
                nodes += 1
            continue
        a, b = operands[begin[i]], operands[begin[i] + 1]
        if elements[a, 0] < 0 or elements[b, 0] < 0:
            elements[y, 0] = -1
            continue
        hold_a = hold_b = False
        if not _fit(elements, a, b, False, False, parts):
            hold_a = _fit(elements, a, b, True, False, parts)
            hold_b = not hold_a
            if hold_b and not _fit(elements, a, b, False, True, parts):
                hold_a = True
        if hold_a:
            nodes, count = _hold(elements, a, edges, nodes, count)
        if hold_b:
            nodes, count = _hold(elements, b, edges, nodes, count)
        _put(elements, y, a, hold_a, parts)
        _put(elements, y, b, hold_b, parts)
    for i in range(len(goals)):
        x = goals[i]
        if elements[x, 0] < 0:
            goals[i] = -1
        elif _is_one(elements[x], parts):
            goals[i] = elements[x, 0]
        else:
            nodes, count = _hold(elements, x, edges, nodes, count)
            goals[i] = elements[x, 3]
    return nodes, count


@kernel
def _pass_down(edges, need):
    """Pass the first goal that needs a node on to its children; edges of a parent come after those of its children."""
    for e in range(len(edges) - 1, -1, -1):
        v = need[edges[e, 0]]
        for i in (1, 2):
            need[edges[e, i]] = min(need[edges[e, i]], v)


def _in_order(nodes: int, edges: np.ndarray, goals: np.ndarray, parts: int) -> Hypergraph:
    """The nodes that some goal needs, those of the first goals first."""
    need = np.full(nodes, len(goals), np.int64)
    feasible = goals >= 0
    np.minimum.at(need, goals[feasible], np.flatnonzero(feasible))
    _pass_down(edges, need)
    need[0] = -1
    order = np.argsort(need, kind="stable")
    order = order[need[order] < len(goals)]
    number = np.zeros(nodes, np.int64)
    number[order] = np.arange(len(order))
    edges = edges[need[edges[:, 0]] < len(goals)]
    parents, left, right = (number[edges[:, i]] for i in range(3))
    return hypergraph(
        parents, left, edges[:, 3], goals=np.where(feasible, number[goals], -1), nodes=len(order), parts=parts,
        right=right if right.any() else None,
    )  # fmt: skip
