"""Monotone alignments in plain PyTorch: one recursion over anti-diagonals for all operations."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.alignment.family import ALIGNMENT
from pullback.inference.engine.recursion import Combine, operations


def value(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, combine: Combine) -> Tensor:
    """`line[i]`, the values of the cells (i, d - i) of anti-diagonal d: score + combine over the moves that lead there."""
    batch, n, m = scores.shape
    empty = torch.where((lengths == 0) & (other_lengths == 0), 0.0, scores.new_tensor(-torch.inf))
    if n == 0 or m == 0:
        return empty
    nothing = scores.new_full((batch, n), -torch.inf)
    rows, columns = torch.arange(n, device=scores.device), torch.arange(n + m - 1, device=scores.device)[:, None]
    inside = (columns >= rows) & (columns - rows < m)
    cells = (columns - rows).clamp(0, m - 1).T.expand(batch, n, n + m - 1)
    skewed = torch.where(inside.T, scores.gather(2, cells), -torch.inf)
    lines = [torch.where(rows == 0, skewed[:, :, 0], -torch.inf)]
    for d in range(1, n + m - 1):
        before, last = (lines[d - 2] if d > 1 else nothing), lines[d - 1]
        diagonal, down = _below(before), _below(last)
        ways = [diagonal, down, last] if moves == "any" else [diagonal, last]
        lines.append(combine(torch.stack(ways, 1) + skewed[:, None, :, d], 1))  # one node per cell for hypergraphs
    goal = (lengths + other_lengths - 2).clamp_min(0) * n + (lengths - 1).clamp_min(0)
    end = torch.stack(lines, 1).flatten(1).gather(1, goal[:, None]).squeeze(1)
    return torch.where((lengths > 0) & (other_lengths > 0), end, empty)


def _below(line: Tensor) -> Tensor:
    """Each row's value at the row above it."""
    return torch.cat([line.new_full((line.shape[0], 1), -torch.inf), line[:, :-1]], 1)


argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample = operations(value, ALIGNMENT.layout)
