"""Implicit maximum likelihood estimation (Niepert et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from pullback.estimators.checks import at_least, not_negative, positive
from pullback.estimators.losses import Perceptron
from pullback.estimators.mirror_at_zero import MirrorAtZero
from pullback.estimators.noise import Gumbel, Noise, noise_or_gumbel
from pullback.estimators.pulled_back import PulledBack
from pullback.estimators.starts import FromPerturbedArgmax


class IMLE(PulledBack):
    """I-MLE: perturbed argmax forward; backward, the difference to the argmax after a step against gamma, with the same noise.

        z_i = argmax(s + T g_i),    gradient mean over i of  z_i - argmax(s + T g_i - eta * gamma_i)

    gamma_i is the gradient of one example's loss at z_i. The gradient is not divided by eta: without noise it is eta
    times Blackbox's.

    One call of `argmax` on `[samples, B, ..., *parts]` finds all samples. `downstream` sees them one after the other,
    each `[B, ..., *parts]`, so targets need not be repeated. The objective is the mean of their losses.

    Args:
        step_size: eta > 0; 10 to 1000 is usual.
        temperature: T >= 0, the scale of the noise: about the number of ones in z is usual. 0 for no noise.
        noise: from scores to noise of their shape, on their device; None is `Gumbel()`, and `SumOfGamma(k)` is usual
            for structures.
        samples: the number of z per example. A layer takes only one.

    >>> import torch
    >>> from pullback import Categorical
    >>> scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 1.0])
    >>> IMLE(step_size=2.0, temperature=0.0).objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad
    tensor([[ 1., -1.,  0.]])
    """

    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}

    def __init__(
        self,
        step_size: float | Tensor = 10.0,
        temperature: float = 1.0,
        noise: Noise | None = None,
        samples: int = 1,
    ) -> None:
        self.step_size = positive(self, "step_size", step_size)
        self.temperature = not_negative(self, "temperature", temperature)
        self.noise = noise_or_gumbel(noise)
        self.samples = at_least(self, "samples", samples, 1)
        start = FromPerturbedArgmax(temperature, noise, samples)
        super().__init__(Perceptron(), start, MirrorAtZero(step_size))
