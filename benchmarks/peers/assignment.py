"""Solvers of the assignment problem: SciPy in a loop, and the batched ones of lapx on one thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.problem import Problem


def scipy(problem: Problem) -> Contender:
    """Scipy's linear_sum_assignment, example by example."""
    from scipy.optimize import linear_sum_assignment

    arrays = problem.scores.cpu().numpy()
    return Contender(
        "scipy",
        lambda: [linear_sum_assignment(x, maximize=True) for x in arrays],
        lambda solved: (_matchings(problem, solved),),
    )


def lapx(problem: Problem) -> Contender:
    """The fastest solver of whole batches in lapx, on costs that are made beforehand. It returns rows and columns alone."""
    import lap

    costs, wide = (-problem.scores).cpu().numpy(), problem.parts[0] != problem.parts[1]
    return Contender(
        "lapx",
        lambda: lap.lapjvr_batch(costs, extend_cost=wide, return_cost=False, n_threads=problem.threads),
        lambda solved: (_matchings(problem, zip(*solved, strict=True)),),
    )


def _matchings(problem: Problem, solved: Iterable[tuple[Any, Any]]) -> Tensor:
    z = torch.zeros(problem.scores.shape)
    for b, (rows, columns) in enumerate(solved):
        z[b, torch.from_numpy(rows), torch.from_numpy(columns)] = 1.0
    return z.to(problem.scores)
