"""Sets of items as lists of their indices, and back."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pullback.structures.readers import check_range, integers, is_padding, is_readable, ones_at


def items_of(z: Tensor) -> Tensor:
    """The items of sets `[..., n]` in ascending order, `[..., k]`; -1 where a set is smaller than the largest."""
    taken = z > 0.5
    most = int(taken.sum(-1).max()) if taken.numel() else 0
    items = torch.arange(z.shape[-1], device=z.device).expand(z.shape)
    ordered = torch.where(taken, items, z.shape[-1]).sort(-1).values[..., :most]
    return torch.where(ordered < z.shape[-1], ordered, -1)


def from_items(indices: Tensor, n: int, owner: str, limit: Callable[[Tensor, int], Tensor]) -> Tensor:
    """The sets `[..., n]` of items `[..., k]` in any order, with -1 or -100 for none: the inverse of `items_of`."""
    x = integers(indices, owner, "indices", "k")
    real = ~is_padding(x)
    check_range(
        x, real, limit(x[..., None], n) - 1, "indices", "items are from 0 to {last}, or the length less one", last=n - 1
    )
    z = ones_at(x, real, n)
    twice = z.sum(-1) != real.sum(-1)
    if is_readable(x) and twice.any():
        raise ValueError(f"indices{torch.nonzero(twice)[0].tolist() or ''} has an item twice")
    return z
