"""The score function estimator (REINFORCE, minimum risk training)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, needs_objective
from pullback.estimators.baselines import Baseline, NoBaseline
from pullback.estimators.checks import losses_of
from pullback.estimators.surrogate import attach
from pullback.inference.torch_seam.derivatives import may_be_differentiated
from pullback.structures import Structure


class ScoreFunction(Estimator):
    """SFE: a sample forward; an unbiased estimate of the gradient of the expected loss backward.

        z ~ p(z) proportional to exp(<s, z>),    gradient (L(z) - b) * grad log p(z) = (L(z) - b) * (z - Marg(s))

    Several structures in one example share its loss: their log-probabilities are summed. The decoder needs neither
    a gradient for z nor to accept averages of structures. At evaluation z is the argmax.

    Args:
        baseline: b: `MovingAverage()` is the paper's, `LeaveOneOut(samples)` draws several samples; None for b = 0.
    """

    def __init__(self, baseline: Baseline | None = None) -> None:
        self.baseline = baseline

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        baseline = self.baseline or NoBaseline()
        fixed = scores.detach()
        z = [structure.sample(fixed) for _ in range(baseline.samples)]
        losses = torch.stack([losses_of(structure, scores, downstream(sample)) for sample in z])
        expected = losses.mean(0)
        if not may_be_differentiated(scores):
            return expected
        with torch.no_grad():
            advantages = baseline.advantages(losses.detach())
            mu = structure.marginals(fixed)
            terms = [_spread(a, mu) * (sample - mu) for a, sample in zip(advantages, z, strict=True)]
            surrogate = torch.stack(terms).mean(0)
        return attach(structure, expected, scores, surrogate)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        raise needs_objective(self, "its gradient needs the losses themselves")

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)

    def state_dict(self) -> dict[str, Any]:
        return self.baseline.state_dict() if self.baseline else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        (self.baseline or NoBaseline()).load_state_dict(state)


def _spread(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(values.shape + (1,) * (like.dim() - values.dim())).to(like.dtype)
