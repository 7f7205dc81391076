"""Choices of items within a budget as a hypergraph: a node stands for the choices among the first i items that cost at most b.

value(i, b) = combine(value(i - 1, b), value(i - 1, b - cost_i) + score_i)
"""

from __future__ import annotations

import numpy as np

from pullback.inference.engine.hypergraph.graph import Hypergraph, hypergraph
from pullback.inference.engine.hypergraph.tables import remembered


@remembered
def graph(shape: tuple[int, ...], costs: bytes, most: int) -> Hypergraph:
    """Its goals are `[n + 1, most + 1]`: a number of items, and a budget.

    Args:
        shape: n.
        costs: of the items, as the bytes of int64 `[n]`.
        most: the largest budget.
    """
    (n,) = shape
    node, count = np.zeros(most + 1, np.int64), 1  # of each budget, for the items so far; the axiom is the empty choice
    goals, parents, left = [node], [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]
    for cost in np.frombuffer(costs, np.int64).tolist():
        without, choices = node, np.stack([node[cost:], node[: max(most + 1 - cost, 0)]], 1)
        new = np.ones(len(choices), np.int64)  # larger budgets may allow the same choices
        new[1:] = (choices[1:] != choices[:-1]).any(1)
        own = count + new.cumsum() - 1
        node = np.concatenate([without[:cost], own])
        count += int(new.sum())
        goals.append(node)
        parents.append(own[new > 0])
        left.append(choices[new > 0])
    items = np.repeat(np.arange(n), np.array([len(each) for each in parents[1:]], np.int64))
    part = np.stack([np.full_like(items, n), items], 1)  # without the item first: it is not taken in a tie
    return hypergraph(
        np.concatenate(parents).repeat(2),
        np.concatenate(left).ravel(),
        part.ravel(),
        goals=np.stack(goals),
        nodes=count,
        parts=n,
    )
