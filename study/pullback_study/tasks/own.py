"""Estimators of the study's own: one that pilot runs on planted trees suggested, and two with more samples."""

from __future__ import annotations

from torch import Tensor

from pullback import Downstream, Estimator, ReinMax, ScoreFunction, Structure
from pullback.parts import LeaveOneOut
from pullback_study.tasks import Method


class Blended(Estimator):
    """The decoder sees the marginals and an exact sample, and learns from both.

        mu = Marg(s),    z ~ p(z) proportional to exp(<s, z>),
        loss w L(mu) + (1 - w) L(z),    gradient J_Marg(s)' [w gamma(mu) + (1 - w) gamma(z)]

    The relaxation gives a decoder that knows nothing yet a signal without noise; the sample shows it what it will see at
    evaluation, where z is the argmax. w = 0 is `SampledSTE`, w = 1 has the gradients of `Marginals`. Two calls of `downstream`.

    >>> import torch
    >>> from pullback import Categorical
    >>> Blended().objective(Categorical(), torch.tensor([[1.0, -torch.inf]]), lambda z: z[:, 0])
    tensor([1.])
    """

    weight = 0.5

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        mu, z = structure.marginals(scores), structure.sample(scores.detach())
        return self.weight * downstream(mu) + (1 - self.weight) * downstream(z + (mu - mu.detach()))

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        raise TypeError("Blended cannot be used as a layer: the decoder sees two things; use Blended().objective")

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


BLENDED = Method("blended", "Blended", "Argmax", Blended, stochastic=True, decoder_calls=lambda steps: 2)
FOUR_SAMPLES = (
    Method(
        "sfe-leave-one-out-4", "SFE, leave-one-out, 4 samples", "Argmax", lambda: ScoreFunction(LeaveOneOut(4)), stochastic=True
    ),
    Method("reinmax-4", "ReinMax, 4 samples", "Argmax", lambda: ReinMax(4), stochastic=True),
)
"""As many samples as the control variate has."""
