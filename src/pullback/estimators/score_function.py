"""The score function estimator (REINFORCE, minimum risk training)."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, needs_objective
from pullback.estimators.baselines import Baseline, ControlVariate, NoBaseline
from pullback.estimators.checks import losses_of
from pullback.estimators.controlled import Draws, controlled_losses
from pullback.estimators.decoder import Decoder
from pullback.estimators.stateful import Stateful
from pullback.estimators.surrogate import attach
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.structures import Structure

_NO_BASELINE = NoBaseline()


class ScoreFunction(Stateful, Estimator):
    """SFE: a sample forward; an unbiased estimate of the gradient of the expected loss backward.

        z ~ p(z) proportional to exp(<s, z>),    gradient (L(z) - b) * grad log p(z) = (L(z) - b) * (z - Marg(s))

    Several structures of one example share its loss: their log-probabilities are summed. The decoder needs no
    gradient for z and need not accept averages of structures. It may write into z. At evaluation z is the argmax.

    One call of `sample` on `[samples, B, ..., *parts]` draws all samples. `downstream` sees them one after the other.

    The estimator is a module, so its `state_dict`, and that of a model that holds it, contain the state of the baseline.

    Args:
        baseline: b: `MovingAverage()` is the paper's, `LeaveOneOut(samples)` draws several samples, `SelfCritical()` takes the
            loss of the argmax, `ControlVariate(samples)` uses the gradient of the decoder; None for b = 0.
    """

    def __init__(self, baseline: Baseline | None = None) -> None:
        Stateful.__init__(self)
        if baseline is not None and not isinstance(baseline, Baseline):
            raise TypeError(
                f"ScoreFunction: baseline is {baseline!r}; it must be a baseline, such as MovingAverage() or "
                f"LeaveOneOut(samples), or None"
            )
        self.baseline = baseline

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        baseline = self.baseline or _NO_BASELINE
        if isinstance(baseline, ControlVariate):
            return _with_control(structure, scores, downstream, baseline)
        fixed = scores.detach()
        samples = baseline.samples
        z = structure.sample(fixed)[None] if samples == 1 else structure.sample(fixed.expand(samples, *fixed.shape))
        best = _loss_of_argmax(structure, scores, downstream) if baseline.with_argmax else []
        # A copy for the decoder: the gradient needs z as it was drawn.
        losses = torch.stack([losses_of(structure, scores, downstream(each.clone())) for each in z])
        expected = losses.mean(0)
        if not may_be_differentiated(scores):
            return expected
        with torch.no_grad():
            advantages = baseline.advantages(torch.stack([*losses.detach(), *best]))
            mu = structure.marginals(fixed)
            surrogate = (_spread(advantages, z) * (z - mu)).mean(0)
        return attach(structure, expected, scores, surrogate)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        raise needs_objective(self, "its gradient needs the losses themselves")

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


def _loss_of_argmax(structure: Structure, scores: Tensor, downstream: Downstream) -> list[Tensor]:
    if not may_be_differentiated(scores):
        return []
    return [Decoder(structure, scores, downstream).losses(structure.argmax(scores.detach()))]


def _with_control(structure: Structure, scores: Tensor, downstream: Downstream, baseline: ControlVariate) -> Tensor:
    def gradient(draws: Draws) -> Tensor:
        examples = draws.losses.dim()
        along = (draws.controls * draws.offsets).flatten(examples).sum(-1)
        losses, controls = (_spread(baseline.advantages(each), draws.offsets) for each in (draws.losses, along))
        plain = (losses * draws.offsets).mean(0)
        control = (controls * draws.offsets).mean(0) - draws.product(draws.controls.mean(0))
        batched = (x if examples > 1 else x[None] for x in (plain, control))
        return baseline.controlled(*batched).reshape(scores.shape)

    if may_be_differentiated(scores):
        baseline.buffers_to(scores.device)
    return controlled_losses(structure, scores, downstream, gradient, baseline.samples, baseline.point)


def _spread(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(values.shape + (1,) * (like.dim() - values.dim())).to(like.dtype)
