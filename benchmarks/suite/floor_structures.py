from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.calls import Nothing
from benchmarks.comparison import Row, Run
from benchmarks.problem import Problem
from pullback import BinaryTree, LinearChain
from pullback.inference.chain import cpu as chains
from pullback.inference.cky import cpu as trees


def floor_structures(run: Run) -> Iterator[Row]:
    """What PyTorch needs to copy the scores, to take their exponentials, and for a function without work and its backward
    pass; and what our kernels need without derivatives around them. One thread, times in ms.
    """
    problems = ((LinearChain(), (50, 20, 20)), (BinaryTree(), (30, 30)), (BinaryTree(), (50, 50)))
    for structure, parts in problems if run.device == "cpu" else ():
        problem = Problem("", 1, structure, parts, run.batch, run.device)
        label = f"{type(structure).__name__} {' x '.join(map(str, parts))}"
        yield Row("floor_structures", label, 1, figures=dict(run.time(_calls(problem), threads=1)))


def _calls(problem: Problem) -> dict[str, Callable[[], Any]]:
    structure, s, direction = problem.structure, problem.scores, problem.direction
    leaf, room, n = s.clone().requires_grad_(), torch.empty_like(s), torch.full((problem.batch,), problem.parts[0])
    one = torch.ones(problem.batch, requires_grad=True)
    shared: dict[str, Callable[[], Any]] = {
        "copy": lambda: room.copy_(s),
        "exponentials": lambda: torch.exp(s, out=room),
        "autograd without work": lambda: torch.autograd.grad(Nothing.apply(one).sum(), one),
    }
    if isinstance(structure, LinearChain):
        z = problem.from_tags(problem.tags)
        return shared | {
            "kernel of the log-likelihood": lambda: chains.log_prob(s, n, z, validate=True),
            "log-likelihood and backward": lambda: torch.autograd.grad(structure.log_prob(leaf, z).sum(), leaf),
        }
    return shared | {
        "kernel of marginals": lambda: trees.marginals(s, n, validate=True),
        "kernel of their derivative": lambda: trees.marginals_vjp(s, n, direction, validate=False),
        "marginals and backward": lambda: torch.autograd.grad(structure.marginals(leaf), leaf, direction),
    }
