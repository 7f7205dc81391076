"""The contract of an estimator: how a gradient gets from the downstream loss to the scores."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from pullback.estimators.checks import losses_of
from pullback.estimators.config import Configured
from pullback.structures import Structure

Downstream = Callable[[Tensor], Tensor]
"""The user's function from z, of the shape of the scores, to the losses of the examples, `[B]`."""


class Estimator(Configured, abc.ABC):
    """How a gradient gets from the downstream loss, through a structure, to the scores.

    An estimator knows nothing of any particular structure: it only calls the inference of the one it is given.

    Scores are `[B, *parts]`, or `[B, ..., *parts]` for several latent structures in one example. Losses
    `[B]` belong to the first dimension.
    """

    @abc.abstractmethod
    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        """The losses of the examples, `[B]`, whose gradient reaches both the scores and the decoder.

        Weights on the losses (a mean, a sum, a mask) change the gradient linearly, and nothing else. Where no
        gradient of the scores is wanted, as under `torch.no_grad`, there are no inner steps.

        Args:
            structure: the structure to go through.
            scores: `[B, ..., *parts]`.
            downstream: from z, of the shape of the scores, to one loss for each example, `[B]`. Some estimators
                call it several times, with averages of structures too.
        """

    @abc.abstractmethod
    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        """Z as a layer, of the shape of the scores, for estimators that can work from the incoming gradient alone.

        The others raise an error that says to use `objective`.
        """

    @abc.abstractmethod
    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        """What the decoder sees at evaluation: the argmax, or the relaxation at its temperature."""

    def predict(self, structure: Structure, scores: Tensor, *, argmax: bool = False) -> Tensor:
        """What evaluation uses, of the shape of the scores: no noise.

        Args:
            structure: the structure to go through.
            scores: `[..., *parts]`.
            argmax: the best structure, for relaxations too: for measures of the structures themselves.
        """
        return structure.argmax(scores) if argmax else self.noiseless(structure, scores)

    def state_dict(self) -> dict[str, Any]:
        """What the estimator has learnt so far, for a checkpoint: empty for all but moving baselines."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        if state:
            raise ValueError(f"{self!r} has no state, and was given {sorted(state)}")


class Layer(Estimator):
    """An estimator that is a layer: its objective is the downstream loss of the layer's output."""

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        return losses_of(structure, scores, downstream(self(structure, scores)))


def needs_objective(estimator: Estimator, why: str) -> TypeError:
    """The error of an estimator that cannot be a plain layer."""
    return TypeError(
        f"{estimator!r} cannot be used as a layer: {why}. "
        f"Use estimator.objective(structure, scores, downstream), where downstream(z) returns the losses [B]"
    )
