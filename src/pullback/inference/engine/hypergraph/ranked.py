"""The k best structures of a dynamic program, from its hypergraph: in plain PyTorch on any device, and compiled on the CPU."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import kernel
from pullback.inference.engine.hypergraph.graph import Graph
from pullback.inference.engine.hypergraph.levels import Levels, by_level
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.front import checks
from pullback.inference.front.layout import Layout

_MOST_TERMS = 2**22  # that the reference sorts at once


@kernel
def _longest(first, left, right, part, parts, longest):
    """Write, for each node, the most nodes and the most parts of one of its derivations."""
    for v in range(1, len(first) - 1):
        for e in range(first[v], first[v + 1]):
            for i in range(2):
                most = longest[left[e], i] + (1 if i == 0 else part[e] < parts)
                if len(right) > 0:
                    most += longest[right[e], i]
                longest[v, i] = max(longest[v, i], most)


@dataclass(frozen=True)
class Sizes:
    """How large derivations are: the most nodes, and the most parts of one."""

    nodes: int
    parts: int


@remembered
def longest(graph: Graph, shape: tuple[int, ...], options: tuple[tuple[str, Any], ...]) -> Sizes:
    """Of all derivations of a hypergraph's goals."""
    table, parts = graph(shape, **dict(options)), math.prod(shape)
    of_node = np.zeros((len(table.first) - 1, 2), np.int64)
    _longest(*table.arrays, parts, of_node)
    most = of_node[np.maximum(table.goals, 0).ravel()].max(0, initial=0)
    return Sizes(int(most[0]), int(most[1]))


@remembered
def _levels(graph: Graph, shape: tuple[int, ...], device: torch.device, options: tuple[tuple[str, Any], ...]) -> Levels:
    return by_level(graph(shape, **dict(options)), math.prod(shape), device)


Most = Callable[..., int]
"""From the shape of the parts and the options to the largest number of them in one structure."""


def operation(layout: Layout, graph: Graph, backend: str, most_parts: Most) -> Callable[..., tuple[Tensor, Tensor]]:
    """The function `topk` of a family on a backend."""

    def compiled(scores: Tensor, *rest: Any, validate: bool, **options: Any) -> tuple[Tensor, Tensor]:
        from pullback.inference.engine.hypergraph.cpu import Batch
        from pullback.inference.engine.hypergraph.ranked_kernels import ranked

        *sizes, k = rest
        batch = Batch(layout, graph, scores, tuple(sizes), options)
        shape = tuple(scores.shape[1:])
        parts = torch.full((batch.count, k, most_parts(shape, **options)), math.prod(shape))
        totals = torch.full((batch.count, k), -torch.inf, dtype=torch.float64)
        deepest = longest(graph, shape, tuple(options.items())).nodes
        batch.spread(ranked, 4.0, deepest, parts.numpy(), totals.numpy(), batch.codes)
        if batch.codes.any() or not batch.sized:
            first = totals[:, 0].numpy()
            (totals,) = checks.finish(layout, batch.scores, tuple(sizes), (totals,), first, validate)
        return parts, totals

    return compiled if backend == "cpu" else functools.partial(reference, layout, graph, most_parts)


def reference(
    layout: Layout, graph: Graph, most_parts: Most, scores: Tensor, *rest: Any, validate: bool, **options: Any
) -> tuple[Tensor, Tensor]:
    """The k best values of every node, level by level; then the derivations from the goals down."""
    *sizes, k = rest
    shape, named = tuple(scores.shape[1:]), tuple(options.items())
    status, safe = layout.status(scores, sizes), layout.in_range(scores, sizes)
    usable = layout.mask(scores, safe) & (status == checks.OK).reshape(-1, *[1] * layout.dims)
    s = torch.where(usable, scores.detach().double(), -torch.inf).flatten(1)
    table, deepest = _levels(graph, shape, scores.device, named), longest(graph, shape, named).nodes
    goals = table.goals.reshape(graph(shape, **options).goals.shape)[safe].long()
    values, choices = _upward(table, torch.cat([s, s.new_zeros(len(s), 1)], 1), k)
    found = values[torch.arange(len(s), device=s.device), goals.clamp_min(0)]
    totals = torch.where((goals >= 0)[:, None], found, -torch.inf)
    parts = _downward(table, goals, totals > -torch.inf, choices, k, deepest, most_parts(shape, **options))
    infeasible = (status == checks.OK) & (totals[:, 0] == -torch.inf)
    return parts, checks.settled(totals, torch.where(infeasible, checks.INFEASIBLE, status), validate)


def _pairs(k: int, binary: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """The ranks of two children that may be among the k best, in the order that decides ties."""
    pairs = [(i, j) for i in range(k) for j in range(k // (i + 1) if binary else 1)]
    first, second = torch.tensor(pairs, device=device).unbind(1)
    return first, second


def _upward(table: Levels, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Values `[B, nodes + 1, k]` of the k best derivations of each node, and which term each is, `[B, nodes + 1, k]`."""
    batch, device = len(scores), scores.device
    first, second = _pairs(k, table.binary, device)
    values = scores.new_full((batch, table.nodes + 1, k), -torch.inf)
    values[:, 0, 0] = 0.0
    choices = torch.zeros(values.shape, dtype=torch.long, device=device)
    for begin, edge, degree, end in plan_of(table):
        step = max(_MOST_TERMS // max(batch * degree * len(first), 1), 1)
        for start in range(begin, end, step):
            stop = min(start + step, end)
            span = slice(edge + (start - begin) * degree, edge + (stop - begin) * degree)
            left, right, part = (x[span].long() for x in (table.left, table.right, table.part))
            terms = values[:, left][..., first] + scores[:, part, None]
            if table.binary:
                terms = terms + values[:, right][..., second]
            terms = terms.reshape(batch, stop - start, degree * len(first))
            best = terms.sort(dim=2, descending=True, stable=True)
            kept = min(k, terms.shape[2])
            values[:, start:stop, :kept], choices[:, start:stop, :kept] = best.values[..., :kept], best.indices[..., :kept]
    return values, choices


def plan_of(table: Levels) -> list[tuple[int, int, int, int]]:
    """Of each level that has edges: its first node, its first edge, the edges of a node, and where its nodes end."""
    plan = table.plan.tolist()
    return [(row[0], row[1], row[2], after[0]) for row, after in itertools.pairwise(plan) if row[2] > 0]


def _downward(table: Levels, goals: Tensor, real: Tensor, choices: Tensor, k: int, deepest: int, most: int) -> Tensor:
    """The parts of the goals' derivations, `[B, k, most]`; where there are fewer, K."""
    batch, device = len(goals), goals.device
    first, second = _pairs(k, table.binary, device)
    plan = table.plan.long()
    rows, columns = torch.arange(batch, device=device)[:, None], torch.arange(k, device=device)
    nodes = torch.zeros(batch, k, deepest + 3, dtype=torch.long, device=device)  # a stack, the axiom below it
    ranks, height = torch.zeros_like(nodes), torch.ones(batch, k, dtype=torch.long, device=device)
    nodes[:, :, 1], ranks[:, :, 1] = torch.where(real, goals[:, None], 0), columns
    parts = torch.full((batch, k, most + 1), table.parts, device=device)
    count = torch.zeros_like(height)
    for _ in range(deepest):
        v, r = nodes[rows, columns, height], ranks[rows, columns, height]
        going = v > 0
        level = torch.searchsorted(plan[:-1, 0].contiguous(), v, right=True) - 1
        term = choices[rows, v, r]
        edge = torch.where(going, plan[level, 1] + (v - plan[level, 0]) * plan[level, 2] + term // len(first), 0)
        pair = term % len(first)
        part = torch.where(going, table.part[edge].long(), table.parts)
        parts[rows, columns, count] = torch.where(part < table.parts, part, parts[rows, columns, count])
        count = count + (part < table.parts)
        height = (height - 1).clamp_min(0)
        pushes = ((table.left, first), (table.right, second)) if table.binary else ((table.left, first),)
        for child, rank in pushes:
            following = torch.where(going, child[edge].long(), 0)
            height = height + (following > 0)
            nodes[rows, columns, height] = torch.where(following > 0, following, nodes[rows, columns, height])
            ranks[rows, columns, height] = torch.where(following > 0, rank[pair], ranks[rows, columns, height])
    return parts[:, :, :most]
