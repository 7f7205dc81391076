"""Knapsacks in plain PyTorch, with costs of their own for each example."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference.engine.hypergraph import ranked
from pullback.inference.engine.recursion import Combine, operations
from pullback.inference.front import checks
from pullback.inference.front.family import backend_of
from pullback.inference.knapsack.derivations import graph
from pullback.inference.knapsack.family import KNAPSACK, SAME

_MOST = 2**28  # sums in one table


def value(scores: Tensor, lengths: Tensor, budget: Tensor, costs: Tensor, combine: Combine) -> Tensor:
    """`best[b]`, the value of the items so far within b: combine those without the next item and those with it."""
    batch, n = scores.shape
    free = have_none(scores, lengths, costs)
    costs = costs.clamp_min(1)
    most = largest(budget, costs)
    best, room = scores.new_zeros(batch, most + 1), torch.arange(most + 1, device=scores.device)
    for i in range(n):
        left = room - costs[:, i, None]
        taken = best.gather(1, left.clamp_min(0)) + scores[:, i, None]
        best = combine(torch.stack([best, torch.where(left >= 0, taken, -torch.inf)], 1), 1)
    return torch.where(free, -torch.inf, best.gather(1, budget.clamp_max(most)[:, None]).squeeze(1))


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, KNAPSACK.layout)


def topk(
    scores: Tensor, lengths: Tensor, budget: Tensor, costs: Tensor, count: int, *, validate: bool
) -> tuple[Tensor, Tensor]:
    """By the hypergraph of each different row of costs."""
    n, status = scores.shape[1], KNAPSACK.layout.status(scores, (lengths, budget, costs))
    status = torch.where((status == checks.OK) & have_none(scores, lengths, costs), checks.INFEASIBLE, status)
    parts = torch.full((len(scores), count, n), n, device=scores.device)
    totals = scores.new_full((len(scores), count), -torch.inf, dtype=torch.float64)
    run = ranked.operation(SAME, graph, backend_of(scores), lambda shape, **options: shape[0])
    if n == 0:  # of which `unique` is an error
        kinds, which = costs[:1], lengths.new_zeros(len(lengths))
    else:
        kinds, which = costs.clamp_min(1).unique(dim=0, return_inverse=True)
    for kind in range(len(kinds)):
        rows = (which == kind).nonzero().squeeze(1)
        units, options = table(budget[rows], kinds[kind])
        parts[rows], totals[rows] = run(scores[rows], lengths[rows], units, count, **options, validate=False)
    return parts, checks.settled(totals, status, validate)


def have_none(scores: Tensor, lengths: Tensor, costs: Tensor) -> Tensor:
    """Whether an item of each example, `[B]`, costs nothing or less; raises if there is not one cost for each item."""
    n = scores.shape[1]
    if costs.shape[1] != n:
        raise ValueError(f"scores have {n} items and costs {costs.shape[1]}; a Knapsack needs one cost for each item")
    return ((costs < 1) & (torch.arange(n, device=costs.device) < lengths[:, None])).any(1)


def largest(budget: Tensor, costs: Tensor) -> int:
    """The largest budget that makes a difference; on a GPU this synchronises."""
    if len(costs) == 0:
        return 0
    n = costs.shape[1]
    most = int(torch.minimum(budget, costs.sum(1)).clamp_min(0).max())
    if n * most > _MOST:
        raise ValueError(
            f"a Knapsack of {n} items and a budget of {most} needs a table of {n * most:.1e} sums: round the costs and the "
            f"budget to larger units"
        )
    return most


def table(budget: Tensor, costs: Tensor) -> tuple[Tensor, dict[str, object]]:
    """The budgets `[B]` that are goals of the hypergraph of items with costs `[n]`, and its options.

    All are in units of the greatest common divisor. Negative budgets stay, and are errors.
    """
    prices = costs.cpu().numpy()
    unit = int(np.gcd.reduce(prices, initial=0)) or 1
    budget = budget.div(unit, rounding_mode="floor")
    prices = prices // unit
    most = largest(budget, torch.from_numpy(prices).expand(len(budget), -1).to(budget.device))
    return budget.clamp_max(most), {"costs": prices.tobytes(), "most": most}
