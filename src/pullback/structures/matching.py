"""Matchings of rows to columns."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.assignment.family import MATCHING
from pullback.inference.front.family import Family
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import check_range, integers, ones_at

_HARD = (
    "Matching has no `{}`: summing over matchings is #P-hard (it is a permanent). What works: `argmax` and `sparsemap`, "
    "and the estimators that need no more, such as SPIGOT, STEIdentity, SparseMAP, Blackbox, IMLE and PerturbedArgmax"
)


class Matching(FamilyStructure):
    """The matchings of n rows to m columns, n <= m for every example, as 0/1 matrices `[..., n, m]`.

    `z[i, j] = 1` if row i gets column j. Every row gets one column, every column at most one row. Scores have the same
    layout. The argmax is the assignment problem, solved in O(n^2 m). Counting matchings is #P-hard, so there are no marginals
    of a Gibbs distribution: `sparsemap` is the differentiable relaxation.

    Rows and columns from an example's lengths on are padding and may hold anything, NaN included. A score of `-inf`
    forbids a pair.
    Of equally good matchings, the argmax is one, the same whatever else is in the batch; equal scores give the diagonal.

    Args:
        lengths: the number of rows of each example, `[...]`. The default is n for all.
        other_lengths: the number of columns. The default is m for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> scores = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    >>> Matching().columns(Matching().argmax(scores))
    tensor([1, 0])
    """

    family: ClassVar[Family] = MATCHING
    missing: ClassVar[dict[str, str]] = {
        name: _HARD.format(name)
        for name in ("log_partition", "marginals", "entropy", "log_prob", "log_prob_within", "kl", "sample")
    }

    def __init__(self, lengths: Any = None, other_lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.lengths = self._as_lengths(lengths)
        self.other_lengths = self._as_lengths(other_lengths, "other_lengths")

    def columns(self, z: Tensor) -> Tensor:
        """The column of each row, `[..., n]`; -1 for padding."""
        z = self._cleaned(z)
        number = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=torch.float32)
        used = z.nan_to_num(0.0, 0.0, 0.0).float()  # a failed example, or padding of unknown length, is NaN
        return used.round_().mul_(number).sum(-1).long() - 1

    def from_columns(self, columns: Tensor, m: int) -> Tensor:
        """The structures `[..., n, m]` of the column of each row, `[..., n]`: the inverse of `columns`.

        Rows from an example's length on may hold anything; without lengths, -1 and -100 are padding.
        """
        x = integers(columns, "a Matching", "columns")
        real, x = self._real_positions(x, "columns")
        limit = self._limit(x[..., None], m, "other_lengths")
        check_range(x, real, limit - 1, "columns", "columns are from 0 to {last}, or other_lengths less one", last=m - 1)
        return ones_at(x[..., None], real[..., None], m)

    def enumerate(self, n: int, m: int) -> Tensor:  # type: ignore[override]
        """All matchings, `[S, n, m]`, by trying every choice of columns; m up to 7 or so."""
        choices = list(itertools.permutations(range(m), n))
        z = torch.zeros(len(choices), n, m)
        for row, columns in enumerate(choices):
            z[row, list(range(n)), list(columns)] = 1.0
        return z
