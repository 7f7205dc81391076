"""The k best structures, as a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._torch.derivatives import in_forward_mode, transforming
from pullback.inference.engine.partition import by_argmax
from pullback.inference.front.layout import Flat, Layout, check_tensor

if TYPE_CHECKING:
    from pullback.structures.base import Structure


class TopK:
    """The k best structures of each example, best first.

    Attributes:
        scores: `[k, ...]`: <s, z> of each, -inf where an example has fewer structures; differentiable in s.
    """

    def __init__(self, scores: Tensor, make: Callable[[], Tensor]) -> None:
        self.scores = scores
        self._make = make
        self._structures: Tensor | None = None  # no functools.cached_property: torch.compile does not take its lock

    @property
    def structures(self) -> Tensor:
        """`[k, ..., *parts]`, zeros where an example has fewer structures. Computed when it is read."""
        if self._structures is None:
            self._structures = self._make()
        return self._structures

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.structures, self.scores))

    def __repr__(self) -> str:
        return f"TopK(scores={self.scores})"

    def __getstate__(self) -> dict[str, Tensor]:
        """With the structures in place of the function that computes them, so that other processes can have both."""
        return {"scores": self.scores, "_structures": self.structures}


def check_count(k: Any) -> int:
    """The number of structures, or an error that says what it must be."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer | torch.SymInt) or k < 1:
        raise ValueError(f"k is {k!r}; it must be an integer of at least 1")
    return k if isinstance(k, torch.SymInt) else int(k)  # type: ignore[return-value]


def partitioned(structure: Structure, scores: Tensor, k: int) -> TopK:
    """The k best structures of an argmax."""
    k, name, dims = check_count(k), type(structure).__name__, structure.event_dims
    check_tensor(scores, name)
    flat = Layout(name, ", ".join(f"n{i}" for i in range(dims))).flatten(scores, ())
    lead, parts = scores.shape[: scores.dim() - dims], flat.scores.shape[1:]

    def best(s: Tensor) -> Tensor:
        """Of examples `[B, N, *parts]`: in the shape of the batch, as the structure may hold something for each example."""
        if not vars(structure):
            return structure.argmax(s.flatten(0, 1)).reshape(s.shape)
        found = [structure.argmax(one.reshape(*lead, *parts)) for one in s.unbind(1)]
        return torch.stack([z.reshape(len(flat.scores), *parts) for z in found], 1)

    allowed = structure.allowed(scores.detach()).expand(scores.shape).reshape(flat.scores.shape)
    parts_of, totals = by_argmax(best, torch.where(allowed, flat.scores.detach(), -torch.inf), k)
    bad = totals[:, :1].isneginf()
    if bad.any():
        raise ValueError(
            f"example {int(bad.nonzero()[0, 0])} of the batch has no structure: {name}.argmax uses a part whose score is -inf, "
            f"or returns NaN"
        )
    return from_parts(flat, parts_of, totals)


def from_parts(flat: Flat, parts: Tensor, totals: Tensor) -> TopK:
    """From the parts of structures, `[B, k, P]` with K for none, and their scores `[B, k]`, NaN for bad examples."""
    count = math.prod(flat.scores.shape[1:])
    return TopK(_leading(flat, _scores(flat, parts, totals, count)), lambda: _leading(flat, _dense(flat, parts, totals, count)))


def _leading(flat: Flat, x: Tensor) -> Tensor:
    """From `[B, k, ...]` to `[k, <the caller's leading dimensions>, ...]`, in the caller's dtype."""
    x = x.to(flat.dtype).movedim(1, 0)
    return x if len(flat.batch) == 1 else x.reshape(x.shape[:1] + flat.batch + x.shape[2:])


def _scores(flat: Flat, parts: Tensor, totals: Tensor, count: int) -> Tensor:
    """Scores in float64, as sums over parts where a derivative may be asked for."""
    if not (torch.is_grad_enabled() and flat.scores.requires_grad) and not (in_forward_mode() or transforming()):
        return totals
    if parts.shape[2] == 0:
        return totals + 0.0 * flat.scores.new_zeros(())
    used = parts < count
    index = torch.where(used, parts, 0).flatten(1)
    picked = flat.scores.flatten(1).double().gather(1, index).reshape(parts.shape)
    return torch.where(totals.isfinite(), torch.where(used, picked, 0.0).sum(2), totals)


def _dense(flat: Flat, parts: Tensor, totals: Tensor, count: int) -> Tensor:
    """0/1 vectors, NaN for bad examples."""
    empty = torch.where(totals[:, :1, None].isnan(), torch.nan, 0.0).to(flat.scores.dtype).expand(*parts.shape[:2], count)
    if count > 0:
        empty = empty.scatter_add(2, parts.clamp_max(count - 1), (parts < count).to(empty.dtype))
    return empty.reshape(*parts.shape[:2], *flat.scores.shape[1:])
