"""The GPU's SparseMAP of trees, which takes and returns heads, as an operator on lists of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def by_parts(solve: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """From lists of parts to heads, and back."""

    def run(scores: Tensor, lengths: Tensor, starts: Tensor, *rest: Any, validate: bool) -> tuple[Tensor, ...]:
        mu, heads, *others = solve(scores, lengths, _heads(starts), *rest, validate=validate)
        n = heads.shape[-1]
        words = torch.arange(n, dtype=torch.int32, device=heads.device)
        return mu, torch.where(heads < 0, -1, heads.int() * n + words), *others

    return run


def sparsemap_vjp(vertices: Tensor, counts: Tensor, direction: Tensor) -> Tensor:
    from pullback.inference.sparsemap import cuda

    heads = _heads(vertices)
    return cuda.sparsemap_vjp(heads, counts, (heads[:, 0] >= 0).sum(-1), direction, validate=False)


def _heads(vertices: Tensor) -> Tensor:
    return torch.where(vertices < 0, -1, vertices // max(vertices.shape[-1], 1)).short()
