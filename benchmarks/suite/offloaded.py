from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from benchmarks.problem import Problem
from pullback import (
    Alignment,
    BinaryTree,
    DependencyTree,
    LinearChain,
    Matching,
    Segmentation,
    SparseMAPSolution,
    Structure,
)

_STEP = 0.1
_BATCHES = (8, 32, 64, 256)
_CASES: dict[str, tuple[Structure, tuple[int, ...]]] = {
    "trees, n = 30": (DependencyTree(), (30, 30)),
    "trees, n = 50": (DependencyTree(), (50, 50)),
    "non-projective, n = 30": (DependencyTree(projective=False), (30, 30)),
    "chain, n = 30, C = 5": (LinearChain(), (30, 5, 5)),
    "segmentation, n = 30, W = 6, C = 5": (Segmentation(), (30, 6, 5)),
    "binary tree, n = 30": (BinaryTree(), (30, 30)),
    "alignment, 30 x 30": (Alignment(), (30, 30)),
    "matching, 30 x 30": (Matching(), (30, 30)),
}


def offloaded(run: Run) -> Iterator[Row]:
    """SparseMAP of CUDA tensors on the GPU, and on all threads of the CPU, copies included; then
    the same for SPIGOT's projection of an argmax moved by 0.1 times a random normal step. A GPU only.
    """
    if torch.device(run.device).type != "cuda":
        return
    threads = torch.get_num_threads()
    for name, (structure, parts) in _CASES.items():
        for batch in _BATCHES:
            problem = Problem(f"{name}, batch {batch}", threads, structure, parts, batch, run.device)
            z = structure.argmax(problem.scores)
            starts = {"SparseMAP": (problem.scores, None), "SPIGOT's projection": (z - _STEP * problem.direction, z)}
            for operation, (scores, start) in starts.items():
                case = f"{operation}: {problem.label}"
                if run.wants(case):
                    yield _row(run, case, problem, scores, start)


def _row(run: Run, case: str, problem: Problem, scores: Tensor, start: Tensor | None) -> Row:
    solve = partial(problem.structure.sparsemap_solution, scores, warm_start=start)

    def on_the_cpu() -> SparseMAPSolution:
        found = problem.structure.sparsemap_solution(scores.cpu(), warm_start=start)
        return replace(found, mu=found.mu.to(scores.device))

    timings = run.time({"GPU": solve, "offloaded": on_the_cpu}, threads=problem.threads)
    row = Row("offloaded", case, problem.threads, timings["GPU"])
    ours, theirs = solve(), on_the_cpu()
    cpu = problem.structure.sparsemap(scores.cpu(), warm_start=None if start is None else start.cpu())
    row.figures = {
        "offloaded, ms": timings["offloaded"],
        "times as fast": timings["GPU"].median / timings["offloaded"].median,
        "gap": max(ours.gap.max().item(), theirs.gap.max().item()),
        "GPU's difference to the CPU": (ours.mu.cpu() - cpu).abs().max().item(),
        "offloaded one's": (theirs.mu.cpu() - cpu).abs().max().item(),
    }
    return row
