"""A batch of scores of any structure, as the benchmarks of structures take it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pullback import LinearChain, Structure


@dataclass(frozen=True)
class Problem:
    """Random normal scores `[B, *parts]` for a structure.

    Attributes:
        label: what the tables call it.
        threads: how many threads everybody may use.
        structure: ours.
        parts: the shape of one example.
        batch: how many examples there are.
        device: where they are.
        dtype: of the scores.
    """

    label: str
    threads: int
    structure: Structure
    parts: tuple[int, ...]
    batch: int
    device: str
    dtype: torch.dtype = torch.float32

    def _normal(self, *shape: int, seed: int = 0) -> Tensor:
        return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(self.device, self.dtype)

    @cached_property
    def emissions(self) -> Tensor:
        """Of a chain, `[B, n, C]`."""
        return self._normal(self.batch, self.parts[0], self.parts[1], seed=1)

    @cached_property
    def transitions(self) -> Tensor:
        """Of a chain, `[C, C]`."""
        return self._normal(self.parts[1], self.parts[1], seed=2)

    @cached_property
    def tags(self) -> Tensor:
        """Of a chain, `[B, n]`."""
        generator = torch.Generator().manual_seed(3)
        return torch.randint(self.parts[1], (self.batch, self.parts[0]), generator=generator).to(self.device)

    @cached_property
    def scores(self) -> Tensor:
        """`[B, *parts]`; a chain's are made of emissions and transitions."""
        if isinstance(self.structure, LinearChain):
            return self.structure.combine(self.emissions, self.transitions)
        return self._normal(self.batch, *self.parts)

    @cached_property
    def direction(self) -> Tensor:
        """The gradient that comes from downstream."""
        return self._normal(self.batch, *self.parts, seed=4)

    @property
    def mask(self) -> Tensor:
        return self.structure.allowed(self.scores)

    def from_tags(self, tags: Tensor) -> Tensor:
        """Tag sequences as structures of a chain."""
        return self.structure.from_tags(tags.to(self.device), self.parts[1]).to(self.scores)
