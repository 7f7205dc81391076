"""The structured hinge loss (Taskar et al., 2003; Tsochantaridis et al., 2005)."""

from __future__ import annotations

from torch import Tensor

from pullback.estimators.losses import Cost, Loss, checked_cost, costs_of
from pullback.structures import Structure


def hamming(target: Tensor) -> Tensor:
    """The Hamming cost: 1 for each part that the target does not have, so that a structure costs its number of wrong parts."""
    return 1 - target


class Hinge(Loss):
    """The structured hinge loss, of structured support vector machines: inference with the costs added to the scores.

        max over z of <s + c, z> - <s, target>,    gradient argmax(s + c) - target

    It is at least the cost of the best structure, and zero where the target beats every other structure by that one's cost.

    Args:
        cost: costs `[..., *parts]`, or a function from the target to costs; the parts of the target should cost nothing.
            The default is the Hamming cost, the number of wrong parts.

    >>> import torch
    >>> from pullback import Categorical
    >>> Hinge()(Categorical(), torch.tensor([[2.0, 1.5, 0.0]]), target=torch.tensor([[1.0, 0.0, 0.0]]))
    tensor([0.5000])
    """

    def __init__(self, cost: Cost | None = None) -> None:
        self.cost = checked_cost(self, cost)

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        cost = costs_of(structure, hamming if self.cost is None else self.cost, target)
        best = structure.argmax(scores + cost)
        return structure._gain(scores, best, target) + structure._product(cost, best)
