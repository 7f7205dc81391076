"""Maximum spanning arborescences as Chu, Liu and Edmonds describe them: plain, slow, obviously right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pullback.inference.engine import partition
from pullback.inference.front import checks
from pullback.inference.trees.family import TREES, from_heads

ROOT = -1
Arcs = dict[tuple[int, int], float]  # (head, modifier): score, for the allowed arcs
Heads = dict[int, int]


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    status = TREES.layout.status(scores, (lengths,)).cpu()
    heads = torch.full(scores.shape[:2], -1, dtype=torch.long)
    for b, length in enumerate(lengths.tolist()):
        if status[b] == checks.OK:
            arcs = _arcs(scores[b, :length, :length])
            best = _best_arborescence(arcs, range(length)) if multiroot else _best_of_single_roots(arcs, length)
            if best is None:
                status[b] = checks.INFEASIBLE
            else:
                for modifier, head in best.items():
                    heads[b, modifier] = modifier if head == ROOT else head
    return checks.settled(from_heads(heads, scores.dtype), status, validate).to(scores.device)


def topk(scores: Tensor, lengths: Tensor, k: int, *, multiroot: bool, validate: bool) -> tuple[Tensor, Tensor]:
    """The k best trees, by the head of the first word that differs from a better one; see `inference/engine/partition.py`."""
    layout, scores = TREES.layout, scores.detach()
    status, (lengths,) = layout.status(scores, (lengths,)), layout.in_range(scores, (lengths,))
    words = torch.where(status == checks.OK, lengths, 0)
    s = torch.where(layout.mask(scores, (words,)), scores, -torch.inf)

    def best(rows: Tensor, s: Tensor) -> Tensor:
        return TREES.argmax(s, words[rows], False, multiroot, False)

    parts, totals = partition.by_groups(best, s, k, dim=-2)
    status = torch.where((status == checks.OK) & (totals[:, 0] == -torch.inf), checks.INFEASIBLE, status)
    return parts, checks.settled(totals, status, validate)


def _arcs(scores: Tensor) -> Arcs:
    table = enumerate(scores.double().tolist())
    everything = {(ROOT if h == m else h, m): score for h, row in table for m, score in enumerate(row)}
    return {arc: score for arc, score in everything.items() if score != -math.inf}


def _best_of_single_roots(arcs: Arcs, length: int) -> Heads | None:
    """Try every word as the root's only child."""
    trees = []
    for child in range(length):
        own = {arc: score for arc, score in arcs.items() if arc[0] != ROOT or arc[1] == child}
        tree = _best_arborescence(own, range(length))
        if tree is not None:
            trees.append(tree)
    if length == 0:
        return {}
    return max(trees, key=lambda tree: sum(arcs[h, m] for m, h in tree.items()), default=None)


def _best_arborescence(arcs: Arcs, nodes: Sequence[int]) -> Heads | None:
    """The heads of the best tree in which every node can be reached from the root, None if there is none.

    Take every node's best head. If that makes a cycle, contract it: an arc h -> m into the cycle is worth what it adds
    to the arc of the cycle it replaces. Solve the smaller problem, and break the cycle where its arc enters.
    """
    heads: Heads = {}
    for m in nodes:
        incoming = [(score, h) for (h, modifier), score in arcs.items() if modifier == m]
        if not incoming:
            return None
        heads[m] = max(incoming)[1]
    cycle = _find_cycle(heads)
    if not cycle:
        return heads

    new = max(nodes) + 1
    contracted: Arcs = {}
    original: dict[tuple[int, int], tuple[int, int]] = {}
    for (h, m), score in arcs.items():
        if h in cycle and m in cycle:
            continue
        arc = (new if h in cycle else h, new if m in cycle else m)
        gain = score - arcs[heads[m], m] if m in cycle else score
        if arc not in contracted or gain > contracted[arc]:
            contracted[arc], original[arc] = gain, (h, m)
    solution = _best_arborescence(contracted, [m for m in nodes if m not in cycle] + [new])
    if solution is None:
        return None
    expanded = {m: heads[m] for m in cycle}
    for m, h in solution.items():
        h, m = original[h, m]
        expanded[m] = h
    return expanded


def _find_cycle(heads: Heads) -> set[int]:
    for start in heads:
        path = [start]
        while heads.get(path[-1], ROOT) != ROOT:
            path.append(heads[path[-1]])
            if path[-1] in path[:-1]:
                return set(path[path.index(path[-1]) :])
    return set()
