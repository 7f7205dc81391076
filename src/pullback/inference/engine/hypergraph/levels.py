"""A hypergraph as a GPU takes it: nodes level by level, and for each node and part where to look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import kernel
from pullback.inference.engine.hypergraph.graph import Hypergraph


@kernel
def _levels(first, left, right, level):
    """Write 0 for the axiom, and for every other node one more than the highest of its children's levels."""
    level[0] = 0
    for v in range(1, len(level)):
        level[v] = 1
        for e in range(first[v], first[v + 1]):
            level[v] = max(level[v], level[left[e]] + 1)
            if len(right) > 0:
                level[v] = max(level[v], level[right[e]] + 1)


@kernel
def _pass_down(first, left, right, part, node, parts):
    """Pass the smallest size that needs a node on to its children and parts."""
    for v in range(len(node) - 1, 0, -1):
        for e in range(first[v], first[v + 1]):
            node[left[e]] = min(node[left[e]], node[v])
            if len(right) > 0:
                node[right[e]] = min(node[right[e]], node[v])
            if part[e] < len(parts):
                parts[part[e]] = min(parts[part[e]], node[v])


@dataclass(frozen=True, eq=False)
class Levels:
    """A hypergraph whose nodes are numbered level by level.

    In each level all nodes have room for equally many edges, so that the places of a node's edges are known without
    looking. What stands in unused room is the edge `edges` (of weight 0), the node `nodes` (of value -inf) or the part
    `parts` (of score 0). All are int32 on the device.

    Attributes:
        plan: `[levels + 2, 5]`: first node, first edge, edges per node, first use, uses per node of each level.
        left: `[edges]`, and `right`: children.
        part: `[edges]`.
        use_edge: `[uses]`: for each node, the edges that have it as a child, and `use_node`, the nodes of those edges.
        part_edge: `[parts, most]`: the edges that have a part, and `part_node`, their nodes; `edges + 1` for all of a node.
        goals: the goal of each size, flat.
        least: `[2, parts]`: the smallest first and last size whose structures may have a part.
        nodes: how many there are.
        edges: how many there is room for.
        widest: the most edges per node, uses per node, and nodes of a level.
        binary: whether edges have two children.
        parts: how many there are.
    """

    plan: Tensor
    left: Tensor
    right: Tensor
    part: Tensor
    use_edge: Tensor
    use_node: Tensor
    part_edge: Tensor
    part_node: Tensor
    goals: Tensor
    least: Tensor
    nodes: int
    edges: int
    widest: tuple[int, int, int]
    binary: bool
    parts: int


def by_level(graph: Hypergraph, parts: int, device: torch.device) -> Levels:
    """The same hypergraph, level by level."""
    nodes = len(graph.first) - 1
    level = np.empty(nodes, np.int32)
    _levels(graph.first, graph.left, graph.right, level)
    number = np.empty(nodes + 1, np.int64)
    number[np.argsort(level, kind="stable")], number[nodes] = np.arange(nodes), nodes
    level = np.sort(level)
    levels = int(level[-1]) + 1
    ends = np.searchsorted(level, np.arange(levels + 1))

    def room(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How many places each node of a level gets, where levels begin, and where nodes begin."""
        most = np.maximum.reduceat(counts, ends[:-1])
        begin = np.concatenate([[0], np.cumsum(most * np.diff(ends))])
        return most, begin, begin[level] + (np.arange(nodes) - ends[level]) * most[level]

    parent = number[np.repeat(np.arange(nodes), np.diff(graph.first))]
    order = np.argsort(parent, kind="stable")
    counts = np.bincount(parent, minlength=nodes)
    degree, edge_begin, own = room(counts)
    edges = int(edge_begin[-1])
    place = np.empty(len(order), np.int64)
    place[order] = own[parent[order]] + _rank(counts)
    children = [number[graph.left], *([number[graph.right]] if len(graph.right) else [])]

    def spread(values: np.ndarray, at: np.ndarray, size: int, fill: int) -> Tensor:
        out = np.full(max(size, 1), fill, np.int32)
        out[at] = values
        return torch.from_numpy(out).to(device)

    used = np.concatenate(children)
    by_child = np.argsort(used, kind="stable")
    use_counts = np.bincount(used, minlength=nodes)
    use_counts[0] = 0  # the axiom's probability is not needed
    by_child = by_child[used[by_child] > 0]
    uses, use_begin, use_own = room(use_counts)
    at = use_own[used[by_child]] + _rank(use_counts)
    edge_of = np.concatenate([place] * len(children))[by_child]
    node_of = np.concatenate([parent] * len(children))[by_child]

    whole = _whole(graph, parts)  # of such nodes one edge stands for all
    real = np.flatnonzero((graph.part < parts) & ~(whole & (_rank(np.diff(graph.first)) > 0)))
    by_part = real[np.argsort(graph.part[real], kind="stable")]
    part_counts = np.bincount(graph.part[real], minlength=parts)
    most = int(part_counts.max(initial=1))
    part_at = graph.part[by_part].astype(np.int64) * most + _rank(part_counts)
    plan = np.stack([ends, edge_begin, np.append(degree, 0), use_begin, np.append(uses, 0)], 1)
    plan = np.concatenate([plan, plan[-1:]])
    no_right = np.zeros(0, np.int64)
    return Levels(
        torch.from_numpy(plan.astype(np.int32)).to(device),
        spread(children[0], place, edges, nodes),
        spread(children[1] if len(children) > 1 else no_right, place if len(children) > 1 else no_right, edges, nodes),
        spread(graph.part, place, edges, parts),
        spread(edge_of, at, int(use_begin[-1]), edges),
        spread(node_of, at, int(use_begin[-1]), nodes),
        spread(np.where(whole[by_part], edges + 1, place[by_part]), part_at, parts * most, edges).reshape(-1, most),
        spread(parent[by_part], part_at, parts * most, nodes).reshape(-1, most),
        torch.from_numpy(np.where(graph.goals >= 0, number[graph.goals], -1).astype(np.int32)).flatten().to(device),
        torch.from_numpy(smallest_sizes(graph, parts)).to(device),
        nodes,
        edges,
        (int(degree.max()), int(uses.max()), int(np.diff(ends).max())),
        len(children) > 1,
        parts,
    )


def smallest_sizes(graph: Hypergraph, parts: int) -> np.ndarray:
    """`[2, parts]`: the smallest first and last size whose goal leads to a part."""
    most = np.iinfo(np.int32).max
    least, possible = np.full((2, parts), most, np.int32), graph.goals >= 0
    for out, size in zip(least, (0, graph.goals.ndim - 1), strict=True):
        node = np.full(len(graph.first) - 1, most, np.int32)
        np.minimum.at(node, graph.goals[possible], np.indices(graph.goals.shape)[size][possible].astype(np.int32))
        _pass_down(graph.first, graph.left, graph.right, graph.part, node, out)
    return least


def _whole(graph: Hypergraph, parts: int) -> np.ndarray:
    """`[edges]`: whether all edges of an edge's node have the same part."""
    counts = np.diff(graph.first)
    node = np.repeat(np.arange(len(counts)), counts)
    same = graph.part == graph.part[graph.first[node]]
    return np.bincount(node, same, len(counts))[node] == counts[node]


def _rank(counts: np.ndarray) -> np.ndarray:
    """0, ..., counts[0] - 1, 0, ..., counts[1] - 1, and so on."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
