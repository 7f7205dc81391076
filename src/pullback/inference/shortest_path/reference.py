"""Paths through a directed acyclic graph in plain PyTorch: the nodes of one level after those of another."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pullback.inference.engine.hypergraph.levels import Levels, by_level
from pullback.inference.engine.hypergraph.ranked import plan_of
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.engine.recursion import Combine
from pullback.inference.shortest_path.network import graph


def value(scores: Tensor, lengths: Tensor, combine: Combine, network: int) -> Tensor:
    """`values[v]`, of the paths from the source to v: combine over the edges e = (u, v) of `values[u]` + the score of e."""
    shape = tuple(scores.shape[1:])
    table = _levels(shape, scores.device, network)
    s = torch.cat([scores.flatten(1), scores.new_zeros(len(scores), 1)], 1)
    values = torch.cat(
        [scores.new_full((len(scores), 1), -torch.inf), scores.new_zeros(len(scores), 1)], 1
    )  # of none, the source
    for begin, first, degree, end in plan_of(table):
        edges = slice(first, first + (end - begin) * degree)
        left = torch.where(table.left[edges] < table.nodes, table.left[edges].long() + 1, 0)
        terms = values[:, left] + s[:, table.part[edges].long()]
        values = torch.cat([values, combine(terms.reshape(len(scores), end - begin, degree), 2)], 1)
    return values.gather(1, table.goals[lengths].long()[:, None] + 1).squeeze(1)


@remembered
def _levels(shape: tuple[int, ...], device: torch.device, network: int) -> Levels:
    return by_level(graph(shape, network), math.prod(shape), device)
