"""What people write themselves where no library serves: plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.comparison import Contender
from benchmarks.problem import Problem


def subset_marginals(k: int):
    """Elementary symmetric polynomials in logarithms, a step per item; marginals by automatic differentiation."""

    def make(problem: Problem) -> Contender:
        leaf = problem.scores.clone().requires_grad_()

        def call() -> Tensor:
            ways = torch.full((len(leaf), k + 1), -1e30, device=leaf.device)
            ways[:, 0] = 0.0
            for i in range(leaf.shape[1]):
                taken = torch.nn.functional.pad(ways[:, :-1] + leaf[:, i, None], (1, 0), value=-1e30)
                ways = torch.logaddexp(ways, taken)
            return torch.autograd.grad(ways[:, k].sum(), leaf)[0]

        return Contender("plain PyTorch", call)

    return make


def alignment(problem: Problem) -> Contender:
    """Soft dynamic time warping over anti-diagonals."""
    leaf = problem.scores.clone().requires_grad_()
    n, m = leaf.shape[1:]

    def call() -> Tensor:
        rows = torch.arange(n, device=leaf.device)
        nothing = torch.full((len(leaf), n), -1e30, device=leaf.device)
        before, last = nothing, torch.where(rows == 0, leaf[:, :, 0], nothing)
        for d in range(1, n + m - 1):
            columns = d - rows
            cells = leaf.gather(2, columns.clamp(0, m - 1)[None, :, None].expand(len(leaf), n, 1)).squeeze(2)
            cells = torch.where((columns >= 0) & (columns < m), cells, -1e30)
            down = torch.nn.functional.pad(last[:, :-1], (1, 0), value=-1e30)
            corner = torch.nn.functional.pad(before[:, :-1], (1, 0), value=-1e30)
            before, last = last, cells + torch.stack([corner, down, last]).logsumexp(0)
        return torch.autograd.grad(last[:, n - 1].sum(), leaf)[0]

    return Contender("plain PyTorch", call)


def semi_markov(operation: str):
    """A semi-Markov model with transitions: a step per position, all widths and labels at once, by autograd."""

    def make(problem: Problem) -> Contender:
        leaf, transitions = problem.scores.clone().requires_grad_(), problem.structure.transitions.detach().requires_grad_()
        batch, n, widths, labels = leaf.shape
        combine = torch.amax if operation == "argmax" else torch.logsumexp

        def call() -> tuple[Tensor, ...]:
            into, last = [torch.zeros(batch, labels, device=leaf.device)], None
            for j in range(1, n + 1):
                width = torch.arange(min(j, widths), device=leaf.device)
                last = combine(torch.stack(into[: -len(width) - 1 : -1], 1) + leaf[:, j - 1 - width, width], 1)
                into.append(combine(last[:, :, None] + transitions, 1))
            total = combine(last, 1).sum()
            return torch.autograd.grad(total, (leaf, transitions) if operation == "log-partition" else leaf)

        return Contender("plain PyTorch", call)

    return make
