"""Shortest paths, alignments for speech, and CTC, as people compute them without us."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.problem import Problem


def dijkstra(problem: Problem) -> Contender:
    """SciPy's Dijkstra, grid by grid, on graphs that are made beforehand. Lengths must not be negative."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n, m = problem.parts
    cells = np.arange(n * m).reshape(n, m)
    steps = [(cells[:-1, :-1], cells[1:, 1:]), (cells[:-1], cells[1:]), (cells[:, :-1], cells[:, 1:])]
    tails, heads = (np.concatenate([pair[side].ravel() for pair in steps]) for side in (0, 1))
    lengths = -problem.scores.cpu().double().numpy().reshape(problem.batch, n * m)
    graphs = [csr_array((own[heads], (tails, heads)), shape=(n * m, n * m)) for own in lengths]

    def call() -> list[np.ndarray]:
        return [dijkstra(graph, indices=0, return_predecessors=True)[1] for graph in graphs]

    def read(found: list[np.ndarray]) -> tuple[Tensor, ...]:
        z = np.zeros((problem.batch, n * m))
        for row, before in zip(z, found, strict=True):
            v = n * m - 1
            while v >= 0:
                row[v], v = 1.0, before[v]
        return (torch.from_numpy(z).reshape(problem.batch, n, m).to(problem.scores),)

    return Contender("scipy", call, read)


def grid(operation: str):
    """A loop over the cells in PyTorch, all grids of the batch at once; paths and marginals by automatic differentiation."""

    def make(problem: Problem) -> Contender:
        leaf = problem.scores.clone().requires_grad_()
        n, m = problem.parts

        def call() -> Tensor:
            lines: list[list[Tensor]] = []
            for i in range(n):
                lines.append([])
                for j in range(m):
                    before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
                    ways = [lines[a][b] for a, b in before if a >= 0 and b >= 0]
                    found = leaf[:, i, j]
                    if ways:
                        terms = torch.stack(ways)
                        found = found + (terms.max(0).values if operation == "argmax" else terms.logsumexp(0))
                    lines[i].append(found)
            return torch.autograd.grad(lines[-1][-1].sum(), leaf)[0]

        return Contender("PyTorch loop", call)

    return make


def ctc_loss(problem: Problem) -> Contender:
    """PyTorch's own loss of log-probabilities, with its gradient in the logits; batches are its second dimension."""
    leaf = problem.scores.clone().requires_grad_()
    targets = problem.structure.targets
    frames, symbols = (torch.full((problem.batch,), size) for size in (problem.parts[0], targets.shape[1]))

    def call() -> Tensor:
        logs = leaf.log_softmax(-1).transpose(0, 1)
        loss = torch.nn.functional.ctc_loss(logs, targets, frames, symbols, reduction="sum")
        return torch.autograd.grad(loss, leaf)[0]

    return Contender("torch", call)


def maximum_path(problem: Problem) -> Contender:
    """The Cython loop that text-to-speech models install. It returns integers and takes a mask."""
    from monotonic_align import maximum_path as solve

    value = problem.scores.transpose(1, 2).contiguous()  # frames first
    mask = torch.ones_like(value)
    return Contender("monotonic-align", lambda: solve(value, mask), lambda z: (z.transpose(1, 2).to(problem.scores),))
