"""Many copies of one batch: structures with their sizes repeated, a decoder that sees one copy at a time, and counted calls."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.estimators.base import Downstream
from pullback.inference.front.layout import Size
from pullback.structures import Structure, StructureWrapper

_COUNTED = ("argmax", "marginals", "sparsemap", "sparsemap_solution", "log_partition", "entropy", "sample")


def sizes_of(structure: Structure) -> list[Size]:
    """The attributes that hold a number for each example, like `lengths`, or a list."""
    layout = getattr(structure, "_layout", None)
    sizes = [Size("lengths", bounds=None)] if layout is None else layout.sizes
    return [size for size in sizes if isinstance(getattr(structure, size.name, None), Tensor)]


def with_sizes(structure: Structure, change: Callable[[Tensor, torch.Size], Tensor]) -> Structure:
    """A copy of the structure whose sizes are changed: in a `StructureWrapper`, those of the structure inside.

    `change` takes the values of a batch and the shape of one example's.
    """
    other = copy.copy(structure)
    if isinstance(other, StructureWrapper):
        other.inner = with_sizes(other.inner, change)
        return other
    for size in sizes_of(structure):
        values = getattr(structure, size.name)
        setattr(other, size.name, change(values, values.shape[values.dim() - size.dims :]))
    return other


def repeated(structure: Structure, batch: torch.Size, draws: int) -> Structure:
    """The structure for scores `[draws * B, ...]`, of one for scores with this batch."""
    return with_sizes(structure, lambda sizes, one: sizes.expand(batch + one).repeat(draws, *[1] * (len(batch) + len(one) - 1)))


class Copies:
    """`downstream` on `[draws * B, ..., *parts]`: one call for each copy of the batch, all at once where `torch.vmap` can.

    Args:
        downstream: the user's function, of `[B, ..., *parts]`.
        batched: whether the user's scores have a batch dimension; else it gets `[*parts]`.
        size: B, 1 without a batch dimension.
        dtype: of the z that it gets.
    """

    def __init__(self, downstream: Downstream, batched: bool, size: int, dtype: torch.dtype) -> None:
        self.calls = 0
        self._size = size
        self._together = True

        def one(z: Tensor) -> Tensor:
            losses = downstream(z.to(dtype) if batched else z[0].to(dtype))
            return losses.double() if batched else losses.double()[None]

        self._one = one

    def __call__(self, z: Tensor) -> Tensor:
        self.calls += 1
        copies = z.unflatten(0, (-1, self._size))
        if len(copies) == 1:
            return self._one(copies[0])
        if self._together:
            try:
                return torch.vmap(self._one, randomness="different")(copies).flatten()
            except Exception:  # the function cannot be mapped, for whatever reason: a loop can always
                self._together = False
        return torch.cat([self._one(each) for each in copies])


def counted(structure: Structure) -> tuple[Structure, Counter[str]]:
    """The structure, of its own class, and the counts of its operations; those inside another are not counted."""
    counts: Counter[str] = Counter()
    inside = False

    def counting(operation: str) -> Any:
        original = getattr(type(structure), operation)

        def call(self: Structure, *args: Any, **options: Any) -> Any:
            nonlocal inside
            if inside:
                return original(self, *args, **options)
            counts[operation.removesuffix("_solution")] += 1
            inside = True
            try:
                return original(self, *args, **options)
            finally:
                inside = False

        return call

    kind = type(type(structure).__name__, (type(structure),), {name: counting(name) for name in _COUNTED})
    other = copy.copy(structure)
    other.__class__ = kind
    return other, counts
