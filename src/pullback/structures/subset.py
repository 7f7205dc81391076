"""Exactly k of n items."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.front.family import Family
from pullback.inference.front.layout import as_sizes
from pullback.inference.sparsemap.solution import SparseMAPSolution
from pullback.inference.subset.family import SUBSET
from pullback.structures.checks import check_limit
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import as_lengths, check_range, integers, is_padding, is_readable, ones_at


class Subset(FamilyStructure):
    """The subsets of exactly k of n items, as 0/1 vectors `[..., n]`.

    The argmax takes the k largest scores (the first of equals). Marginals are ratios of elementary symmetric
    polynomials, in O(nk). SparseMAP is the projection onto the capped simplex, mu = min(max(s - tau, 0), 1), in closed form.

    Items from an example's length on are padding and may hold anything, NaN included. A score of `-inf` forbids an item.

    Args:
        k: the number of items to take: an integer, or integers that broadcast against the batch.
        lengths: the number of items of each example, `[...]`. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> Subset(2).argmax(torch.tensor([0.5, 2.0, 1.0, -1.0]))
    tensor([0., 1., 1., 0.])
    >>> Subset(2).sparsemap(torch.tensor([1.0, 1.0, 1.0, -9.0]))
    tensor([0.6667, 0.6667, 0.6667, 0.0000])
    """

    family: ClassVar[Family] = SUBSET

    def __init__(self, k: Any, lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.k = as_sizes(k, "k")
        # how large tables must be; unknown where k cannot be read, or only by a synchronisation
        known = self.k is not None and not self.k.is_cuda and self.k.numel() > 0 and not torch.compiler.is_compiling()
        self.most = int(self.k.max()) if known and self.k is not None else 2**31 - 1
        self.lengths = as_lengths(lengths, "lengths")

    def __repr__(self) -> str:
        k = self.k.item() if self.k is not None and self.k.numel() == 1 else list(self.k.shape) if self.k is not None else None
        return f"Subset(k={k})" if self.lengths is None else f"Subset(k={k}, lengths={list(self.lengths.shape)})"

    def sparsemap(
        self, scores: Tensor, *, warm_start: object = None, max_iterations: int | None = None, tolerance: float | None = None
    ) -> Tensor:
        """The projection onto the capped simplex, in closed form."""
        check_limit(max_iterations, tolerance)
        flat = self._flat(scores)
        return flat.restore(self._call("project", flat))

    def sparsemap_solution(
        self, scores: Tensor, *, warm_start: object = None, max_iterations: int | None = None, tolerance: float | None = None
    ) -> SparseMAPSolution:
        """The closed form with its certificate; `structures` are computed when they are read."""
        from pullback.inference.subset.decompose import Decomposed

        mu = self.sparsemap(scores, max_iterations=max_iterations, tolerance=tolerance)
        slack = scores.detach().double() - mu.detach().double()
        best = self.argmax(slack)
        gap = (self.score(slack, best) - self.score(slack, mu.detach().double())).clamp_min(0.0)
        calls = torch.zeros_like(gap, dtype=torch.int32)
        return SparseMAPSolution(mu, gap, calls, torch.ones_like(gap, dtype=torch.bool), Decomposed(mu.detach()))

    def indices(self, z: Tensor) -> Tensor:
        """The items of each subset in ascending order, `[..., k]`; -1 where a subset is smaller than the largest."""
        taken = self._cleaned(z) > 0.5
        most = int(taken.sum(-1).max()) if taken.numel() else 0
        items = torch.arange(z.shape[-1], device=z.device).expand(z.shape)
        ordered = torch.where(taken, items, z.shape[-1]).sort(-1).values[..., :most]
        return torch.where(ordered < z.shape[-1], ordered, -1)

    def from_indices(self, indices: Tensor, n: int) -> Tensor:
        """The subsets `[..., n]` of items `[..., k]` in any order, with -1 or -100 for none: the inverse of `indices`."""
        x = integers(indices, "a Subset", "indices", "k")
        real, limit = ~is_padding(x), self._limit(x[..., None], n)
        check_range(x, real, limit - 1, "indices", "items are from 0 to {last}, or the length less one", last=n - 1)
        z = ones_at(x, real, n)
        twice = z.sum(-1) != real.sum(-1)
        if is_readable(x) and twice.any():
            raise ValueError(f"indices{torch.nonzero(twice)[0].tolist() or ''} has an item twice")
        return z

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        """All subsets of k of n items, `[S, n]`; k must be one number."""
        assert self.k is not None
        if self.k.numel() != 1:
            raise ValueError(f"k has shape {list(self.k.shape)}; enumerate needs a Subset with one k")
        chosen = list(itertools.combinations(range(n), int(self.k)))
        z = torch.zeros(len(chosen), n)
        for row, items in enumerate(chosen):
            z[row, list(items)] = 1.0
        return z
