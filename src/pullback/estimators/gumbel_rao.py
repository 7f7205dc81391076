"""Rao-Blackwellised straight-through Gumbel-Softmax (Paulus et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.estimators.base import Layer
from pullback.estimators.checks import at_least, categorical_only, positive
from pullback.estimators.noise import Gumbel, Noise, drawn, noise_or_gumbel
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.inference.front.layout import working
from pullback.structures import Structure


class GumbelRao(Layer):
    """Gumbel-Rao: an exact sample forward; backward, ST-Gumbel averaged over the noise that leads to this sample.

        z ~ softmax(s),    gradient mean over k of J_softmax((s + g_k) / T)' gamma(z) / T,    g_k given argmax(s +
        g_k) = z

    Given class i, with E_j ~ Exp(1): the winner's perturbed score is -log E_i + log Z, the others' -log(E_j exp(-s_j)
    + E_i / Z). No derivative goes through this noise. It has the mean of `PerturbAndMAP(T)` and less variance. At
    evaluation z is the argmax.

    Args:
        samples: how many g_k; 10 to 1000 is usual. They go through one softmax, and the decoder sees one z.
        temperature: T > 0; 0.1 to 1 is usual.
        noise: where standard Gumbel noise comes from (E = exp(-g)); None is `Gumbel()`.
    """

    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}

    def __init__(self, samples: int = 10, temperature: float = 0.5, *, noise: Noise | None = None) -> None:
        self.samples = at_least(self, "samples", samples, 1)
        self.temperature = positive(self, "temperature", temperature)
        self.noise = noise_or_gumbel(noise)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        categorical_only(self, structure, "PerturbAndMAP, or ReinMax, which sees exact samples of every structure")
        z = structure.sample(scores.detach())
        if not may_be_differentiated(scores):
            return z
        wide = working(scores)
        like = wide if self.samples > 1 else wide[None]
        noise = conditional_noise(wide.detach(), z, drawn(self.noise, like, self.samples))
        mu = structure.marginals((wide + noise) / self.temperature).mean(0).to(z.dtype)
        return z + (mu - mu.detach())

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


def conditional_noise(scores: Tensor, z: Tensor, free: Tensor) -> Tensor:
    """Gumbel noise given that argmax(s + g) = z, `[samples, ..., K]`; zero on forbidden classes.

    Args:
        scores: `[..., K]`, without a gradient.
        z: `[..., K]`, one-hot.
        free: Gumbel noise without the condition, `[samples, ..., K]`.
    """
    s, log_e = scores.double(), -free.double()
    log_z = s.logsumexp(-1, keepdim=True)
    first = torch.where(z > 0, log_e, 0.0).sum(-1, keepdim=True)
    # In logs: exp(-s) alone may overflow.
    others = -torch.logaddexp(log_e - s, first - log_z)
    perturbed = torch.where(z > 0, log_z - first, others)
    return torch.where(s == -torch.inf, 0.0, perturbed - s).to(scores.dtype)
