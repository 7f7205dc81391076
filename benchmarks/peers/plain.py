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
