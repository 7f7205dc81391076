"""The SPO+ loss of "smart predict, then optimise" (Elmachtoub and Grigas, 2022)."""

from __future__ import annotations

from torch import Tensor

from pullback.estimators.losses import Loss, costs_of
from pullback.structures import Structure


class SPOPlus(Loss):
    """SPO+, an upper bound of the regret of decisions that are made from predicted costs.

    The scores s are minus the predicted costs, c the true ones, and the target z is the best structure for them:

        max over y of <2 s + c, y> - <2 s + c, z>,    gradient 2 (argmax(2 s + c) - z)

    The regret <c, argmax(s)> - <c, z> is the price of decisions from s. The loss is zero where s = -c. What a
    structure adds to the score of y (transitions) counts once in each of these, as it does in decisions from -c: as a cost that
    is known.

    >>> import torch
    >>> from pullback import Categorical
    >>> costs = torch.tensor([[1.0, 2.0, 5.0]])                     # the first class is the cheapest
    >>> predicted = torch.tensor([[2.0, 1.0, 5.0]])                 # the second one seems to be
    >>> SPOPlus()(Categorical(), -predicted, costs=costs)
    tensor([3.])
    """

    def __call__(  # type: ignore[override]
        self, structure: Structure, scores: Tensor, target: Tensor | None = None, *, costs: Tensor
    ) -> Tensor:
        """One loss for each structure, `[...]`.

        Args:
            structure: the structure.
            scores: minus the predicted costs, `[..., *parts]`; `-inf` forbids a part.
            target: the best structures for the true costs, of the shape of the scores; by default they are computed.
            costs: the true costs, of the shape of the scores.
        """
        costs = costs_of(structure, costs, scores)
        if target is None:
            target = structure.argmax((-costs).masked_fill(~structure.allowed(scores), -float("inf")))
        spoilt = 2 * scores + costs  # what a structure adds of its own counts once, as it does in decisions from -c
        return structure._gain(spoilt, structure.argmax(spoilt), target)
