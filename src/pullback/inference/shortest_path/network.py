"""Directed acyclic graphs: what lies on paths from the source to the target, in topological order, and their hypergraphs.

value(v) = combine over the edges e = (u, v) of value(u) + score(e), or, where nodes are scored, + score(v).
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pullback.inference.engine.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.front.layout import Layout
from pullback.inference.shortest_path.family import CELLS, EDGES, LONGEST, OnPaths, check_shape


@dataclass(frozen=True, eq=False)
class Network:
    """A graph that structures share, known to the operators by its number.

    Attributes:
        number: of the graph; no two have the same in one process.
        shape: of the parts.
        table: of its paths; the only goal is that of the whole shape.
        longest: the most parts of a path.
        layout: of the scores; edges on no path are no parts.
        origin: the function that makes it, and its arguments.
    """

    number: int
    shape: tuple[int, ...]
    table: Hypergraph
    longest: int
    layout: Layout
    origin: tuple[Callable[..., Network], tuple[Any, ...]]

    def __reduce__(self) -> Any:
        return self.origin


_numbers = itertools.count()
_known: weakref.WeakValueDictionary[int, Network] = weakref.WeakValueDictionary()
_same: weakref.WeakValueDictionary[tuple[object, ...], Network] = weakref.WeakValueDictionary()


@remembered
def known(network: int) -> Network:
    """The network of a number. Those used last stay for backward passes, even if their structures are gone."""
    found = _known.get(network)
    if found is None:
        raise RuntimeError("this ShortestPath has been deleted: keep the structure until the last backward pass of its results")
    return found


def graph(shape: tuple[int, ...], network: int) -> Hypergraph:
    """The paths of the network of a number, for scores of this shape."""
    found = known(network)
    check_shape(shape, found.shape)
    return found.table


def of_edges(edges: np.ndarray, source: int, target: int) -> Network:
    """The network of edges `[E, 2]`, int64, which are the parts."""
    key = edges.tobytes(), source, target
    found = _same.get(key)
    if found is None:
        tails, heads = _places(edges, source, target)
        part = np.flatnonzero(tails >= 0)
        origin = of_edges, (edges, source, target)
        found = _same[key] = _network((len(edges),), tails[part], heads[part], part, int(heads.max(initial=0)), origin)
    return found


def of_cells(n: int, m: int, steps: tuple[tuple[int, int], ...]) -> Network:
    """The network of a grid, whose cells are the parts: from the first to the last by steps down and to the right."""
    key = n, m, steps
    found = _same.get(key)
    if found is None:
        cells = np.arange(n * m)
        row, column = np.divmod(cells, m)
        tails, heads = [np.zeros(1, np.int64)], [np.ones(1, np.int64)]  # node 0 is before the first cell
        for down, right in steps:
            inside = (row >= down) & (column >= right)
            heads.append(1 + cells[inside])
            tails.append(1 + cells[inside] - down * m - right)
        head = np.concatenate(heads)
        found = _same[key] = _network((n, m), np.concatenate(tails), head, head - 1, n * m, (of_cells, key))
    return found


def _network(
    shape: tuple[int, ...], tails: np.ndarray, heads: np.ndarray, part: np.ndarray, last: int, origin: tuple[Any, ...]
) -> Network:
    """Of edges between nodes 0, ..., last in topological order, of which the first is the source and the last the target."""
    goals = np.append(np.full(shape[0], -1), last)
    table = hypergraph(heads, tails, part, goals=goals, nodes=last + 1, parts=int(np.prod(shape)))
    family, number, layout = EDGES if len(shape) == 1 else CELLS, next(_numbers), None
    if len(shape) == 1 and len(part) < shape[0]:
        layout = OnPaths(torch.from_numpy(np.isin(np.arange(shape[0]), part)))
    longest = LONGEST[number] = int(table.height[last])  # type: ignore[index]
    found = _known[number] = Network(number, shape, table, longest, layout or family.layout, origin)
    weakref.finalize(found, family.plans.forget, (number,)).atexit = False
    weakref.finalize(found, LONGEST.pop, number, None).atexit = False
    return found


def _places(edges: np.ndarray, source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the tail and the head of each edge `[E]`, in a topological order of the nodes on paths from the source to
    the target; -1 for edges on no path.
    """
    names, flat = np.unique(np.append(edges.ravel(), [source, target]), return_inverse=True)
    tails, heads = flat[:-2].reshape(-1, 2).T
    first, last = int(flat[-2]), int(flat[-1])
    after = _leaving(tails, heads, len(names))
    order = _topological(after, np.bincount(heads, minlength=len(names)).tolist(), names)
    reached, leads = [False] * len(names), [False] * len(names)
    reached[first] = leads[last] = True
    for v in order:
        if reached[v]:
            for w in after[v]:
                reached[w] = True
    for v in reversed(order):
        leads[v] = leads[v] or any(leads[w] for w in after[v])
    if not reached[last]:
        raise ValueError(f"no path leads from the source {source} to the target {target}")
    used = [v for v in order if reached[v] and leads[v]]
    place = np.full(len(names), -1)
    place[used] = np.arange(len(used))
    inside = (place[tails] >= 0) & (place[heads] >= 0)
    return np.where(inside, place[tails], -1), np.where(inside, place[heads], -1)


def _leaving(tails: np.ndarray, heads: np.ndarray, count: int) -> list[list[int]]:
    """For each node, those that its edges lead to."""
    ends = np.cumsum(np.bincount(tails, minlength=count))[:-1]
    return [part.tolist() for part in np.split(heads[np.argsort(tails, kind="stable")], ends)]


def _topological(after: list[list[int]], waiting: list[int], names: np.ndarray) -> list[int]:
    """All nodes, each behind those with an edge to it, of which `waiting` counts the ones that are missing."""
    order = [v for v, count in enumerate(waiting) if count == 0]
    for v in order:
        for w in after[v]:
            waiting[w] -= 1
            if waiting[w] == 0:
                order.append(w)
    if len(order) < len(names):
        cycle = " -> ".join(str(names[v]) for v in _cycle(after, waiting))
        raise ValueError(f"edges have a cycle: {cycle}; a ShortestPath needs a directed graph without cycles")
    return order


def _cycle(after: list[list[int]], waiting: list[int]) -> list[int]:
    """A cycle among the nodes that are left: each of them has one of them before it."""
    before = {w: v for v, count in enumerate(waiting) if count for w in after[v] if waiting[w]}
    v, seen = next(iter(before)), dict[int, None]()
    while v not in seen:
        seen[v] = None
        v = before[v]
    backwards = list(seen)
    return [v, *reversed(backwards[backwards.index(v) :])]
