"""Items within a budget."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.front.family import Family
from pullback.inference.front.layout import as_sizes, check_batches
from pullback.inference.knapsack.family import KNAPSACK
from pullback.structures.family import FamilyStructure
from pullback.structures.items import from_items, items_of
from pullback.structures.readers import integers, is_readable


class Knapsack(FamilyStructure):
    """The sets of items whose costs sum to at most the budget, as 0/1 vectors `[..., n]`.

        Z = {z in {0, 1}^n : sum_i cost_i z_i <= budget}

    All operations take O(n budget) time and memory, in units of the costs' greatest common divisor. Examples that share their
    costs run in compiled kernels; costs of their own for each example, in plain PyTorch.

    Items from an example's length on are padding, and may hold anything, as may their costs. A score of `-inf` forbids an item.

    Ties in the argmax: from the last item on, an item that makes no difference is not taken; so items of score 0 are not.

    Args:
        costs: positive integers, `[n]` or `[..., n]`.
        budget: the largest sum of costs: an integer, or integers that broadcast against the batch.
        lengths: the number of items of each example, `[...]`. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> Knapsack([4, 3, 2], budget=5).argmax(torch.tensor([3.0, 2.0, 1.5]))
    tensor([0., 1., 1.])
    """

    family: ClassVar[Family] = KNAPSACK

    def __init__(self, costs: Any, budget: Any, lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        found = as_sizes(costs, "costs")
        self.costs = integers(found, "a Knapsack", "costs")
        self.budget = as_sizes(budget, "budget")
        self.lengths = self._as_lengths(lengths)
        if is_readable(self.costs) and (self.lengths is None or is_readable(self.lengths)):
            self._check_costs()

    def _check_costs(self) -> None:
        wrong = self.costs < 1
        if self.lengths is not None:
            check_batches(wrong.shape[:-1], self.lengths.shape, "costs", "lengths")
            wrong = wrong & (torch.arange(self.costs.shape[-1], device=wrong.device) < self.lengths[..., None])
        if wrong.any():
            where = torch.nonzero(wrong)[0].tolist()
            cost = int(self.costs.expand(wrong.shape)[tuple(where)])
            raise ValueError(
                f"costs{where} is {cost}; costs must be positive integers: an item that costs nothing is free to take"
            )

    def indices(self, z: Tensor) -> Tensor:
        """The items of each set in ascending order, `[..., k]`; -1 where a set is smaller than the largest."""
        return items_of(self._cleaned(z))

    def from_indices(self, indices: Tensor, n: int) -> Tensor:
        """The sets `[..., n]` of items `[..., k]` in any order, with -1 or -100 for none: the inverse of `indices`."""
        return from_items(indices, n, "a Knapsack", self._limit)

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        """All sets of n items, `[S, n]`; costs and budget must be those of one example."""
        assert self.budget is not None
        if self.costs.dim() != 1 or self.budget.numel() != 1:
            raise ValueError(
                f"costs has shape {list(self.costs.shape)} and budget {list(self.budget.shape)}; enumerate needs a "
                f"Knapsack with costs [n] and one budget"
            )
        z = torch.tensor(list(itertools.product((0, 1), repeat=n)), dtype=torch.long).reshape(2**n, n)
        return z[(z * self.costs[:n]).sum(1) <= self.budget].float()
