"""Tag sequences."""

from __future__ import annotations

import functools
import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference._numba.memory import LARGE
from pullback.inference.chain.family import CHAIN
from pullback.inference.front.family import Family
from pullback.inference.front.layout import broadcasts, check_tensor
from pullback.inference.front.plan import serving
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import check_range, check_width, integers, lengths_of, ones_at


class LinearChain(FamilyStructure):
    """The sequences of n tags out of C, as 0/1 tensors `[..., n, C, C]` (a linear-chain CRF).

    `z[i, a, b] = 1` for tag a at position i - 1 and tag b at position i: one part per position. At position 0 only row a = 0
    exists. Scores have the same layout; `combine` makes them from emissions and transitions, and `tags` reads structures.
    All operations take O(n C^2).

    Padding, and the rows a > 0 of position 0, may hold anything, NaN included. A score of `-inf` forbids a transition.
    Ties in the argmax: from the last position back, the first of the best tags.

    Args:
        lengths: the number of positions of each example, `[...]`. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> chain = LinearChain()
    >>> scores = chain.combine(torch.tensor([[1.0, 0.0], [0.6, 0.5]]), transitions=torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> chain.tags(chain.argmax(scores))
    tensor([0, 1])
    """

    family: ClassVar[Family] = CHAIN

    def __init__(self, lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.lengths = self._as_lengths(lengths)

    def combine(self, emissions: Tensor, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None) -> Tensor:
        """Scores `[..., n, C, C]`: `scores[i, a, b] = transitions[i - 1, a, b] + emissions[i, b]`, differentiable.

        They have the dtype that PyTorch promotes to: emissions in bfloat16 and transitions in float32 make float32.

        Args:
            emissions: `[..., n, C]`.
            transitions: from tag a to tag b, `[C, C]` for all positions, or `[..., n - 1, C, C]`.
            start: `[..., C]`, added to the first tag's score.
            end: `[..., C]`, added to the last tag's score: that of each example's length.
        """
        for name, x in {"emissions": emissions, "transitions": transitions, "start": start, "end": end}.items():
            if x is not None:
                check_tensor(x, "a LinearChain", name)
        if emissions.dim() < 2 or transitions.shape[-2:] != (emissions.shape[-1],) * 2:
            raise ValueError(
                f"emissions has shape {list(emissions.shape)} and transitions {list(transitions.shape)}; a LinearChain needs "
                f"emissions [..., n, C], and transitions [C, C] or [..., n - 1, C, C]"
            )
        n, tags = emissions.shape[-2:]
        for name, x in {"start": start, "end": end}.items():
            if x is not None and x.shape[-1:] != (tags,):
                raise ValueError(f"{name} has shape {list(x.shape)}; for {tags} tags it needs [..., {tags}]")
        dtypes = [x.dtype for x in (emissions, transitions, start, end) if x is not None]
        emissions = emissions.to(functools.reduce(torch.promote_types, dtypes))
        if n == 0:
            return emissions.new_zeros(*emissions.shape[:-2], 0, tags, tags)
        if start is not None:
            emissions = _add_first(emissions, start)
        if end is not None:
            last = torch.full((), n, device=emissions.device) if self.lengths is None else self._lengths_of(emissions, n, 2)
            is_last = torch.arange(n, device=emissions.device) == last[..., None] - 1
            emissions = torch.where(is_last[..., None], emissions + end[..., None, :], emissions)
        between = transitions if transitions.dim() > 2 else transitions.expand(n - 1, tags, tags)
        if between.shape[-3] != n - 1:
            shape = list(transitions.shape)
            raise ValueError(f"transitions has shape {shape}; for {n} positions it needs [..., {n - 1}, C, C]")
        first = emissions.new_zeros(*between.shape[:-3], 1, tags, tags)
        between = torch.cat([first, between.to(emissions.dtype)], -3)
        small = emissions.numel() * tags * emissions.itemsize < LARGE
        if small or emissions.device.type != "cpu" or torch.compiler.is_compiling() or serving("cpu") != "cpu":
            return between + emissions[..., None, :]
        from pullback.inference.chain.emissions import join  # which loads the compiler

        return join(between, emissions)

    def tags(self, z: Tensor) -> Tensor:
        """The tag of each position, `[..., n]`; -1 for padding."""
        used, tag = self._summed(z, "z").max(-1)
        return torch.where(used > 0.5, tag, -1)

    def tag_marginals(self, mu: Tensor) -> Tensor:
        """The probability of each tag at each position, `[..., n, C]`, from marginals `[..., n, C, C]`; 0 for padding."""
        return self._summed(mu, "mu")

    def _summed(self, z: Tensor, name: str) -> Tensor:
        """The sum over the tags before, `[..., n, C]`, zero for padding; all of z is read once, and masked when it is small."""
        self.family.layout.check(z, name)
        n, batch = z.shape[-3], z.shape[:-3]
        if n == 0:
            return z.new_zeros(z.shape[:-1])
        sums = torch.cat([z[..., :1, 0, :], z[..., 1:, :, :].sum(-2)], -2)
        if self.lengths is None or not broadcasts(self.lengths.shape, batch):
            return sums
        real = torch.arange(n, device=z.device) < self._lengths_of(z, n, 3)[..., None]
        return torch.where(real[..., None], sums, 0.0)

    def from_tags(self, tags: Tensor, C: int) -> Tensor:
        """The structures of tag sequences `[..., n]`: the inverse of `tags`.

        Entries beyond an example's length may hold anything; without lengths, -1 and -100 are padding.
        """
        x = integers(tags, "a LinearChain", "tags")
        real, x = self._real_positions(x, "tags")
        check_range(x, real, C - 1, "tags", "with C = {C} tags are from 0 to {last}", C=C, last=C - 1)
        x = torch.where(real, x, 0).clamp(0, C - 1)
        before = torch.cat([torch.zeros_like(x[..., :1]), x[..., :-1]], -1)
        return ones_at((before * C + x)[..., None], real[..., None], C * C).reshape(*x.shape, C, C)

    def contains(self, z: Tensor) -> Tensor:
        """Whether z is a tag sequence, `[...]` of bool, from one look at z: faster than an argmax."""
        self.family.layout.check(z, "z")
        n, z = z.shape[-3], z.detach()
        z = z if z.dtype in (torch.float32, torch.float64) else z.float()
        if n == 0:
            return torch.ones(z.shape[:-3], dtype=torch.bool, device=z.device)
        first, (_, tag) = _one_hot(z[..., :1, :1, :])  # the only row of position 0
        single, (before, after) = _one_hot(z[..., 1:, :, :])
        joined = torch.cat([first, single & (before == torch.cat([tag, after[..., :-1]], -1))], -1)
        if self.lengths is not None:
            joined = joined | (torch.arange(n, device=z.device) >= self._lengths_of(z, n, 3)[..., None])
        return joined.all(-1)

    def _lengths_of(self, x: Tensor, n: int, dims: int) -> Tensor:
        """The lengths on the device of x, whose last `dims` dimensions are those of one sequence of n positions."""
        assert self.lengths is not None
        check_width(self._widths.get("lengths"), n, "lengths")
        return lengths_of(self.lengths, x.shape[: x.dim() - dims], n, x.device)

    def enumerate(self, n: int, C: int) -> Tensor:  # type: ignore[override]
        """All tag sequences, `[S, n, C, C]`; C^n up to some thousands."""
        sequences = list(itertools.product(range(C), repeat=n))
        return LinearChain().from_tags(torch.tensor(sequences, dtype=torch.long).reshape(len(sequences), n), C)


def _one_hot(x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Whether each of `[..., A, B]` has a single one and zeros otherwise, and the row and the column of it, `[...]` each.

    From the sums of the rows: a product with the indices would be rounded under autocast, in TF32, and for many tags.
    """
    rows = x.sum(-1)
    row = rows.argmax(-1)
    hit, column = x.gather(-2, row[..., None, None].expand(*row.shape, 1, x.shape[-1])).squeeze(-2).max(-1)
    return (hit == 1) & (rows.sum(-1) == 1) & (x.flatten(-2).amin(-1) >= 0), (row, column)


def _add_first(emissions: Tensor, start: Tensor) -> Tensor:
    """Emissions `[..., n, C]`, with `start` `[..., C]` added at the first position."""
    first = emissions[..., :1, :] + start[..., None, :]
    return torch.cat([first, emissions[..., 1:, :].expand(*first.shape[:-2], -1, -1)], -2)
