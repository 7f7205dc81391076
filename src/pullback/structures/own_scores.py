"""Structures that add to the score of their parts: transitions, for example, which belong to the structure."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import route
from pullback.inference.front.layout import Flat, broadcasts, check_tensor, working
from pullback.structures.family import FamilyStructure, _equal

_PER_PART = ("argmax", "marginals", "sample")


class OwnScores(FamilyStructure):
    """A structure with tensors of its own, which are part of the score of z and have gradients.

    The operators of its family take one tensor per example in which the scores and its own tensors are joined.
    """

    own: ClassVar[tuple[str, ...]]
    """The names of its tensors, which are attributes."""

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in (*self.own, "lengths")}
        shown = [f"{name}={list(x.shape)}" for name, x in given.items() if x is not None]
        return f"{self._layout.owner}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        return same if same is not True else all(map(_equal, self._own(), other._own()))  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), *(None if x is None else x.shape for x in self._own()), self.validate))

    def score(self, scores: Tensor, z: Tensor) -> Tensor:
        """The score of z, `[...]`: <s, z>, and what the structure's own tensors add. Differentiable."""
        return self._whole_score(scores, z).to(self._dtype(torch.promote_types(scores.dtype, z.dtype)))

    @abc.abstractmethod
    def _own_score(self, scores: Tensor, z: Tensor) -> Tensor:
        """The score of structures by the structure's own tensors, in float64."""

    @abc.abstractmethod
    def _joined(self, flat: Flat) -> Tensor:
        """Scores and the structure's own tensors, as the operators take them."""

    @abc.abstractmethod
    def _apart(self, joined: Tensor, flat: Flat) -> Tensor:
        """The entries that belong to the scores, of a tensor like `_joined`."""

    def _flat(self, scores: Tensor) -> Flat:
        flat = super()._flat(scores)
        flat.dtype = self._dtype(flat.dtype)
        return flat

    def _run(self, operation: str, scores: Tensor, recorded: str = "") -> Tensor:
        flat = self._flat(scores)
        return flat.restore(self._call(operation, flat, recorded=recorded))

    def _result_dtype(self, scores: Tensor) -> torch.dtype:
        return self._dtype(super()._result_dtype(scores))

    def _dtype(self, dtype: torch.dtype) -> torch.dtype:
        """The dtype that PyTorch promotes this one and those of the structure's own tensors to."""
        for x in self._own():
            if x is not None and x.dtype != dtype:
                dtype = torch.promote_types(dtype, x.dtype)
        return dtype

    def _own(self) -> tuple[Tensor | None, ...]:
        return tuple([getattr(self, name) for name in self.own])

    def _gain(self, scores: Tensor, z: Tensor, other: Tensor) -> Tensor:
        own = self._own_score(scores, z) - self._own_score(scores, other)
        found = super()._gain(scores.double(), z, other) + own
        return found.to(self._dtype(torch.promote_types(scores.dtype, z.dtype)))

    def _whole_score(self, scores: Tensor, z: Tensor) -> Tensor:
        """In float64, where large scores do not cancel to noise."""
        return self._product(scores.double(), z.double()) + self._own_score(scores, z)

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        self._check_same_shape(scores, z)
        scores = self._expanded(scores, z)
        return (self._whole_score(scores, z) - self._log_partition(scores)).to(self._flat(scores).dtype)

    def _feasible(self, scores: Tensor) -> Tensor:
        flat = self._flat(torch.where(scores.detach() == -torch.inf, -torch.inf, 0.0))
        found = self.family.call("argmax", self._joined(flat), *flat.sizes, options=(), validate=False)
        return flat.reshape(~found.flatten(1)[:, 0].isnan())

    def _join(self, flat: Flat) -> Flat:
        joined = self._joined(flat)
        return Flat(self.family.layout, joined, flat.sizes, flat.batch, flat.dtype, route(joined))

    def _call(self, operation: str, flat: Flat, *others: Any, recorded: str = "") -> Any:
        found = super()._call(operation, self._join(flat), *others, recorded=recorded)
        return self._apart(found, flat) if operation in _PER_PART else found


def check_own(x: Any, owner: str, name: str) -> None:
    """Raise if this cannot be a structure's own tensor of scores."""
    check_tensor(x, owner, name)
    if not x.is_floating_point():
        raise TypeError(f"{name} has dtype {x.dtype}; {owner} needs floating-point numbers: pass {name}.float()")


def bilinear(a: Tensor, weights: Tensor, b: Tensor) -> Tensor:
    """The sum over pairs of a w b, `[..., n]`, in float64; a pair that is not there adds nothing, even if it is forbidden."""
    forbidden = weights.detach() == -torch.inf
    found = ((a @ torch.where(forbidden, 0.0, weights.double())) * b).sum(-1)
    lost = ((a.detach() @ forbidden.double()) * b.detach()).sum(-1) > 0
    return torch.where(lost, -torch.inf, found)


def one_each(x: Tensor, flat: Flat, dims: int) -> Tensor:
    """A tensor of a structure, `[..., *its own]`, with one for each example of a batch, or without that dimension."""
    if x.dim() == dims:
        return working(x)
    lead, own = x.shape[: x.dim() - dims], x.shape[x.dim() - dims :]
    if not broadcasts(lead, flat.batch):
        raise ValueError(
            f"a {flat.layout.owner} holds a tensor of shape {list(x.shape)}; its leading dimensions must broadcast to those of "
            f"the scores, {list(flat.batch)}"
        )
    return working(x).expand(*flat.batch, *own).reshape(len(flat.scores), *own)


def for_each(x: Tensor, flat: Flat, dims: int) -> Tensor:
    """The same with one for each example, `[B, ...]`."""
    return one_each(x, flat, dims).expand(len(flat.scores), *x.shape[x.dim() - dims :])
