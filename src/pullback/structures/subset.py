"""Exactly k of n items, or at most k."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.front.family import Family
from pullback.inference.front.layout import as_flag, as_sizes
from pullback.inference.sparsemap.solution import SparseMAPSolution
from pullback.inference.subset.family import SUBSET
from pullback.structures.checks import check_limit
from pullback.structures.family import FamilyStructure
from pullback.structures.items import from_items, items_of


class Subset(FamilyStructure):
    """The subsets of exactly k of n items, or with `at_most=True` of at most k, as 0/1 vectors `[..., n]`.

    The argmax takes the k largest scores (the first of equals), with `at_most` those of them that are positive: items of
    score 0 are not taken. Marginals are ratios of elementary symmetric polynomials, in O(nk). SparseMAP is the projection onto
    the capped simplex, mu = min(max(s - tau, 0), 1), in closed form: tau is such that mu sums to k; with `at_most` it is at
    least 0.

    Items from an example's length on are padding and may hold anything, NaN included. A score of `-inf` forbids an item.

    Args:
        k: the number of items to take: an integer, or integers that broadcast against the batch.
        lengths: the number of items of each example, `[...]`. The default is n for all.
        at_most: whether smaller subsets are structures too, among them the empty one.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> Subset(2).argmax(torch.tensor([0.5, 2.0, 1.0, -1.0]))
    tensor([0., 1., 1., 0.])
    >>> Subset(2).sparsemap(torch.tensor([1.0, 1.0, 1.0, -9.0]))
    tensor([0.6667, 0.6667, 0.6667, 0.0000])
    >>> Subset(2, at_most=True).argmax(torch.tensor([0.5, 0.0, -1.0, -1.0]))
    tensor([1., 0., 0., 0.])
    """

    family: ClassVar[Family] = SUBSET

    def __init__(self, k: Any, lengths: Any = None, at_most: bool = False, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.at_most = as_flag(at_most, "at_most")
        if self.at_most:
            self.centre_dims = None  # type: ignore[misc]
        self.k = as_sizes(k, "k")
        # how large tables must be; unknown where k cannot be read, or only by a synchronisation
        known = self.k is not None and not self.k.is_cuda and self.k.numel() > 0 and not torch.compiler.is_compiling()
        self.most = int(self.k.max()) if known and self.k is not None else 2**31 - 1
        self.lengths = self._as_lengths(lengths)

    def __repr__(self) -> str:
        k = self.k.item() if self.k is not None and self.k.numel() == 1 else list(self.k.shape) if self.k is not None else None
        lengths = "" if self.lengths is None else f", lengths={list(self.lengths.shape)}"
        return f"Subset(k={k}{lengths}{', at_most=True' if self.at_most else ''})"

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
        decomposed = Decomposed(mu.detach(), self.k if self.at_most else None)
        return SparseMAPSolution(mu, gap, calls, torch.ones_like(gap, dtype=torch.bool), decomposed)

    def indices(self, z: Tensor) -> Tensor:
        """The items of each subset in ascending order, `[..., k]`; -1 where a subset is smaller than the largest."""
        return items_of(self._cleaned(z))

    def from_indices(self, indices: Tensor, n: int) -> Tensor:
        """The subsets `[..., n]` of items `[..., k]` in any order, with -1 or -100 for none: the inverse of `indices`."""
        return from_items(indices, n, "a Subset", self._limit)

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        """All subsets of k, or of at most k, of n items, `[S, n]`; k must be one number."""
        assert self.k is not None
        if self.k.numel() != 1:
            raise ValueError(f"k has shape {list(self.k.shape)}; enumerate needs a Subset with one k")
        counts = range(0 if self.at_most else int(self.k), int(self.k) + 1)
        chosen = [items for count in counts for items in itertools.combinations(range(n), count)]
        z = torch.zeros(len(chosen), n)
        for row, items in enumerate(chosen):
            z[row, list(items)] = 1.0
        return z
