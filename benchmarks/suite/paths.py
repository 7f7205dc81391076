from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run, largest_difference
from benchmarks.peers import paths as peers
from benchmarks.problem import Problem
from benchmarks.suite.structures import _score_difference
from pullback import CTC, Alignment, ShortestPath


class _Lengths(Problem):
    """Scores that are minus positive lengths."""

    def _normal(self, *shape: int, seed: int = 0) -> Tensor:
        return -super()._normal(*shape, seed=seed).abs()


def shortest_path(run: Run) -> Iterator[Row]:
    """Paths through 12 x 12 grids by steps down, to the right and diagonally, against SciPy's Dijkstra in a loop (which returns
    predecessors and no tensor `z`) and a loop over the cells in PyTorch.
    """
    paths: Any = ShortestPath.grid(12, 12)
    for threads in run.threads:
        problem = _Lengths("argmax, 12 x 12", threads, paths, (12, 12), run.batch, run.device)
        calls = {"argmax": lambda p=problem: paths.argmax(p.scores), "marginals": lambda p=problem: paths.marginals(p.scores)}
        makers: dict[str, list[Any]] = {
            "argmax": [peers.dijkstra, peers.grid("argmax")],
            "marginals": [peers.grid("marginals")],
        }
        for operation, call in calls.items():
            case = replace(problem, label=f"{operation}, 12 x 12")
            difference: Any = _score_difference if operation == "argmax" else largest_difference
            yield run.compare("shortest_path", case, call, makers[operation], difference)  # type: ignore[arg-type]


def ctc(run: Run) -> Iterator[Row]:
    """The CTC loss of logits with its gradient, against PyTorch's. Both have the log-softmax and its backward pass."""
    for frames, symbols, length, batch in ((100, 32, 20, 32), (500, 64, 60, 32)):
        targets = torch.randint(1, symbols, (batch, length), generator=torch.Generator().manual_seed(0))
        structure = CTC(targets)
        for threads in run.threads:
            label = f"loss and backward, T = {frames}, V = {symbols}, L = {length}, batch {batch}"
            problem = Problem(label, threads, structure, (frames, symbols), batch, run.device)
            leaf = problem.scores.clone().requires_grad_()

            def call(leaf: Tensor = leaf, structure: CTC = structure) -> Tensor:
                return torch.autograd.grad(-structure.log_partition(leaf.log_softmax(-1)).sum(), leaf)[0]

            yield run.compare("ctc", problem, call, [peers.ctc_loss], largest_difference)  # type: ignore[arg-type]


def speech(run: Run) -> Iterator[Row]:
    """The best alignment of T tokens with 4 T frames, batch 16, against the Cython wheel `monotonic-align`."""
    forward: Any = Alignment(moves="forward")
    for tokens in (32, 128, 512):
        for threads in run.threads:
            problem = Problem(
                f"argmax, {tokens} x {4 * tokens}, batch 16", threads, forward, (tokens, 4 * tokens), 16, run.device
            )
            yield run.compare(  # type: ignore[arg-type]
                "speech", problem, lambda p=problem: forward.argmax(p.scores), [peers.maximum_path], _score_difference
            )
