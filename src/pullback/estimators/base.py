"""The contract of an estimator: how a gradient gets from the downstream loss to the scores."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from pullback.estimators.checks import checking, losses_of, warn_if_unused
from pullback.estimators.config import Configured
from pullback.structures import Structure

Downstream = Callable[[Tensor], Tensor]
"""The user's function from z, of the shape of the scores, to the losses of the examples, `[B]`."""


class Estimator(Configured, abc.ABC):
    """Carries a gradient from the downstream loss, through a structure, to the scores.

    An estimator calls only the operations of the structure it is given, so it works with every structure that has them.

    Scores are `[B, *parts]`, or `[B, ..., *parts]` for several latent structures per example. Losses
    `[B]` belong to the first dimension.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("objective", "__call__"):
            if name in cls.__dict__:
                setattr(cls, name, checking(cls.__dict__[name]))

    @abc.abstractmethod
    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        """One loss per example, `[B]`, with a gradient for both the scores and the decoder.

        Weights on the losses (a mean, a sum, a mask) scale the gradient linearly and change nothing else. If no
        gradient of the scores is needed, as under `torch.no_grad`, there are no inner steps.

        Args:
            structure: the structure to go through.
            scores: `[B, ..., *parts]`.
            downstream: a function from z, of the shape of the scores, to one loss per example, `[B]`. Some estimators
                call it several times, also with averages of structures.
        """

    @abc.abstractmethod
    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        """Z as a layer, of the shape of the scores, for estimators that need nothing but the incoming gradient.

        Other estimators raise an error that says to use `objective`.
        """

    @abc.abstractmethod
    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        """The z of evaluation, without noise: the argmax, or the relaxation at its temperature."""

    def predict(self, structure: Structure, scores: Tensor, *, argmax: bool = False) -> Tensor:
        """The structure or the average for evaluation, of the shape of the scores, without noise.

        Args:
            structure: the structure to go through.
            scores: `[..., *parts]`.
            argmax: return the best structure for relaxations, too, for metrics of the structures themselves.
        """
        return structure.argmax(scores) if argmax else self.noiseless(structure, scores)

    def state_dict(self) -> dict[str, Any]:
        """The state of the estimator, for a checkpoint; empty for estimators without state."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        if state:
            raise ValueError(f"{self!r} has no state; got the entries {sorted(state)}")


class Layer(Estimator):
    """An estimator that is a layer: its objective is the downstream loss of the layer's output."""

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        z = self(structure, scores)
        losses = losses_of(structure, scores, downstream(z))
        warn_if_unused(self, downstream, losses, z)
        return losses


def needs_objective(estimator: Estimator, why: str) -> TypeError:
    """The error of an estimator that cannot be a plain layer."""
    return TypeError(
        f"{estimator!r} cannot be used as a layer: {why}. "
        f"Use estimator.objective(structure, scores, downstream), where downstream(z) returns the losses [B]"
    )
