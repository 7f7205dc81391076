"""A forward pass through what a start gives the decoder, and a rule for the backward pass."""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, needs_objective
from pullback.estimators.checks import losses_of, warn_if_unused
from pullback.estimators.decoder import Decoder
from pullback.estimators.starts import FromArgmax, Start
from pullback.estimators.surrogate import Rule, point_with, with_weights
from pullback.inference._torch.derivatives import is_finite, may_be_differentiated
from pullback.structures import Structure

Gamma = Callable[[Tensor], Tensor]
"""From mu to the gradient of each example's loss there, of the shape of mu."""


def forward_losses(
    structure: Structure,
    scores: Tensor,
    downstream: Downstream,
    start: Start,
    rule: Rule,
    later: list[Decoder] | None = None,
    owner: Estimator | None = None,
) -> Tensor:
    """The losses, `[B]`, of what the start gives the decoder: their mean over its samples.

    Args:
        structure: the structure.
        scores: `[B, ..., *parts]`.
        downstream: called once for each sample, on `[B, ..., *parts]`.
        start: of the forward pass.
        rule: from the perturbed scores, z and gamma to the surrogate gradient of one example's loss, all `[B, ...,
            *parts]`, or `[samples, B, ..., *parts]` for several samples.
        later: gets one `Decoder` for each sample, for calls in the backward pass.
        owner: the estimator, if it needs losses that depend on z, and warns where they do not.
    """
    perturbed = start.perturbed(scores)
    examples = examples_of(structure, perturbed, start)
    if may_be_differentiated(scores):
        z, zero = point_with(structure, perturbed, start.point, rule, examples=examples)
    else:
        z, zero = start.point(structure, perturbed), None
    found = []
    for each in (z,) if start.samples == 1 else z:
        if later is not None:
            later.append(Decoder(structure, scores, downstream))
        found.append(losses_of(structure, scores, downstream(each)))
        if owner is not None:
            warn_if_unused(owner, downstream, found[-1], each)
    losses = found[0] if start.samples == 1 else torch.stack(found)
    losses = losses if zero is None else with_weights(losses, zero)
    return losses if start.samples == 1 else losses.mean(0)


def examples_of(structure: Structure, perturbed: Tensor, start: Start) -> int:
    """How many leading dimensions of the perturbed scores have losses of their own: samples and batch."""
    several = start.samples > 1
    return int(several) + min(1, perturbed.dim() - structure.event_dims - several)


class Gammas:
    """The gammas of one batch as rules may read them: on allowed parts, and finite. Examples fail one by one.

    An example whose gamma is not finite on an allowed part gets a NaN gradient (there: zeros stay on all other
    parts), which a `GradScaler` sees and skips; inference gets zeros in its place, and the other examples are not
    affected.

    Args:
        allowed: which parts may be used, `[B, ..., *parts]` or `[samples, B, ..., *parts]` of bool.
        examples: how many leading dimensions have losses of their own.
    """

    def __init__(self, allowed: Tensor, examples: int) -> None:
        self.allowed = allowed
        self._examples = examples
        self._failed: Tensor | None = None

    def read(self, gamma: Tensor) -> Tensor:
        """Gamma with zeros on parts that are not allowed and in examples that fail."""
        gamma = torch.where(self.allowed, gamma, 0.0)
        if is_finite(gamma):
            return gamma
        finite = gamma.isfinite().flatten(self._examples).all(-1)
        failed = ~finite.reshape(finite.shape + (1,) * (gamma.dim() - finite.dim()))
        self._failed = failed if self._failed is None else self._failed | failed
        return torch.where(failed, 0.0, gamma)

    def mark(self, surrogate: Tensor) -> Tensor:
        """The surrogate gradient, NaN on the allowed parts of the examples that failed."""
        if self._failed is None:
            return surrogate
        return torch.where(self._failed & self.allowed, torch.nan, surrogate)


class Surrogate(Estimator):
    """A structure forward; backward, a gradient for the scores made from gamma, the gradient of one example's loss at z.

    The base of estimators that need no further call of the decoder: a subclass defines `gradient` and, where the
    decoder should see something other than argmax(s), `start`. This class handles weights on the losses, several
    samples, failed examples, evaluation and the layer.
    """

    start: Start = FromArgmax()
    """The input of the decoder: a start whose `is_forward` is true."""

    @abc.abstractmethod
    def gradient(self, structure: Structure, scores: Tensor, z: Tensor, gamma: Tensor) -> Tensor:
        """The surrogate gradient of one example's loss, of the shape of the scores.

        Args:
            structure: the structure.
            scores: as the start perturbed them, `[B, ..., *parts]`, or `[samples, B, ..., *parts]`.
            z: what the decoder saw, of that shape.
            gamma: the gradient of each example's loss at z, of that shape; finite, and zero on parts that are not
                allowed.
        """

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        return forward_losses(structure, scores, downstream, self.start, self._rule(structure), owner=self)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        if self.start.samples > 1:
            raise needs_objective(self, "the decoder sees several samples, one after the other")
        return point_with(structure, self.start.perturbed(scores), self.start.point, self._rule(structure), examples=None)[0]

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)

    def _rule(self, structure: Structure) -> Rule:
        def rule(scores: Tensor, z: Tensor, gamma: Tensor) -> Tensor:
            gammas = Gammas(structure.allowed(scores), examples_of(structure, scores, self.start))
            return gammas.mark(self.gradient(structure, scores, z, gammas.read(gamma)))

        return rule
