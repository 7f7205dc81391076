from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.calls import Nothing, captured
from benchmarks.comparison import Row, Run
from benchmarks.problem import Problem
from pullback import BinaryTree, DependencyTree, LinearChain, Segmentation, Structure

_CASES: dict[str, tuple[Structure, tuple[int, ...]]] = {
    "trees, n = 30": (DependencyTree(), (30, 30)),
    "binary tree, n = 30": (BinaryTree(), (30, 30)),
    "segmentation, n = 30, W = 6, C = 5": (Segmentation(), (30, 6, 5)),
    "chain, n = 50, C = 20": (LinearChain(), (50, 20, 20)),
    "chain, n = 30, C = 5": (LinearChain(), (30, 5, 5)),
}


def backward_passes(run: Run) -> Iterator[Row]:
    """Forward and backward passes on a GPU, in ms: called from Python, where PyTorch hands each backward pass to a thread of
    its own; the same on the caller's thread (`torch.autograd.set_multithreading_enabled(False)`); and replayed from a
    CUDA graph, where Python's share does not count. The first row is a function without work and its sum. A GPU only.
    """
    if torch.device(run.device).type != "cuda":
        return
    one = torch.ones(run.batch, device=run.device, requires_grad=True)
    yield from _row(run, "a function without work", partial(_gradient, Nothing.apply, one))
    for name, (structure, parts) in _CASES.items():
        problem = Problem(name, 1, structure, parts, run.batch, run.device)
        leaf = problem.scores.clone().requires_grad_()
        yield from _row(run, f"marginals, {name}", partial(_pulled_back, structure, leaf, problem.direction))
        if isinstance(structure, LinearChain):
            z = problem.from_tags(problem.tags)
            likelihood = partial(structure.log_prob, z=z)
            yield from _row(run, f"log-likelihood, {name}", partial(_gradient, likelihood, leaf))


def _gradient(value: Callable[[Tensor], Tensor], leaf: Tensor) -> Tensor:
    return torch.autograd.grad(value(leaf).sum(), leaf)[0]


def _pulled_back(structure: Structure, leaf: Tensor, direction: Tensor) -> Tensor:
    return torch.autograd.grad(structure.marginals(leaf), leaf, direction)[0]


def _row(run: Run, case: str, call: Callable[[], Any]) -> Iterator[Row]:
    if not run.wants(case):
        return
    row = Row("backward_passes", case, 1)
    row.figures |= run.time({"from Python": call}, threads=1)
    with torch.autograd.set_multithreading_enabled(False):
        row.figures |= run.time({"on the caller's thread": call}, threads=1)
    row.figures |= run.time({"CUDA graph": captured(call)}, threads=1)
    yield row
