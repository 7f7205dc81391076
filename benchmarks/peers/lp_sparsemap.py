"""lp-sparsemap: the active-set solver in C++, a sentence at a time. Its projective trees have a single root."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.inputs import Case

_UNTIL_CONVERGED = 100_000


def graph(case: Case) -> Contender:
    """Its interface for PyTorch, forward and backward.

    The outer loop is for several factors that share variables; with one factor a single step without a
    penalty is exact (the default penalty returns the projection of s / 1.1).
    """
    from lpsmap import DepTree, TorchFactorGraph

    def solve(scores: Tensor) -> Tensor:
        problem = TorchFactorGraph()
        variables = problem.variable_from(scores)
        problem.add(DepTree(variables, packed=True, projective=True))
        problem.solve(max_iter=1, max_inner_iter=_UNTIL_CONVERGED, step_size=1e-12, adapt=False)
        return variables.value

    leaves = [scores.requires_grad_() for scores in _sentences(case, case.scores)]
    directions = _sentences(case, case.direction)

    def call() -> list[tuple[Tensor, Tensor]]:
        solved = []
        for scores, direction in zip(leaves, directions, strict=True):
            mu = solve(scores)
            solved.append((mu.detach(), torch.autograd.grad(mu, scores, direction)[0]))
        return solved

    return Contender("lp-sparsemap", call, lambda solved: _read(case, solved))


def factor(case: Case) -> Contender:
    """The factor alone, forward and backward, without the graph of factors and without autograd: its fastest path."""
    from lpsmap.ad3ext.tree import PFactorTree
    from lpsmap.ad3qp.factor_graph import PFactorGraph

    everything = [each.double().flatten().tolist() for each in _sentences(case, case.scores)]
    directions = [each.double().flatten().tolist() for each in _sentences(case, case.direction)]

    def call() -> list[tuple[Any, Any]]:
        solved = []
        for n, scores, direction in zip(case.words, everything, directions, strict=True):
            problem, tree = PFactorGraph(), PFactorTree()
            tree.initialize(True, True, n)
            problem.declare_factor(tree, [problem.create_binary_variable() for _ in range(n * n)], owned_by_graph=True)
            mu, _ = tree.solve_qp(scores, [], max_iter=_UNTIL_CONVERGED)
            grad, _ = tree.jacobian_vec(direction)
            solved.append((mu, grad))
        return solved

    return Contender("lp-sparsemap, factor alone", call, lambda solved: _read(case, solved))


def _sentences(case: Case, values: Tensor) -> list[Tensor]:
    """Each sentence without its padding, modifier x head."""
    return [value[:n, :n].T.contiguous() for value, n in zip(values.cpu(), case.words, strict=True)]


def _read(case: Case, solved: list[tuple[Any, Any]]) -> tuple[Tensor, ...]:
    results = (torch.zeros_like(case.scores, dtype=torch.float64), torch.zeros_like(case.scores, dtype=torch.float64))
    for sentence, (n, parts) in enumerate(zip(case.words, solved, strict=True)):
        for result, part in zip(results, parts, strict=True):
            result[sentence, :n, :n] = torch.as_tensor(part, dtype=torch.float64).reshape(n, n).T
    return results
