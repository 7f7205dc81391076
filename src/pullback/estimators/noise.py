"""Noises: what perturbs scores, independently for each part. Any callable from scores to noise of their shape is one."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pullback.estimators.checks import at_least, positive
from pullback.estimators.config import Configured

Noise = Callable[[Tensor], Tensor]
"""From scores to noise of their shape, dtype and device."""


class Gumbel(Configured):
    """Standard Gumbel noise, density exp(-g - exp(-g)) on each part.

    argmax(s + g) is an exact sample for a categorical. Draws are always finite.

    >>> Gumbel()(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    >>> Gumbel().score(torch.tensor([0.0]))          # 1 - exp(-g), and not g
    tensor([0.])
    """

    def __call__(self, scores: Tensor) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)
        exponential = torch.empty_like(scores, dtype=wide).exponential_()
        return -exponential.clamp_min(torch.finfo(wide).tiny).log().to(scores.dtype)

    def score(self, noise: Tensor) -> Tensor:
        """nu'(g) = 1 - exp(-g), with exp(-nu) the density: the factor of Stein's identity."""
        return -torch.expm1(-noise)


class Normal(Configured):
    """Standard normal noise, density exp(-g^2 / 2) / sqrt(2 pi) on each part.

    >>> Normal().score(torch.tensor([0.5]))
    tensor([0.5000])
    """

    def __call__(self, scores: Tensor) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)
        return torch.empty_like(scores, dtype=wide).normal_().to(scores.dtype)

    def score(self, noise: Tensor) -> Tensor:
        """nu'(g) = g."""
        return noise


class SumOfGamma(Configured):
    """Sum-of-Gamma noise, for structures of k parts: the sum of k of them is close to Gumbel noise.

        g = (1/k) (sum over i = 1..terms of Gamma(shape 1/k, scale k/i)  -  log terms)

    With k = 1 and many terms it is Gumbel noise. The variance tends to pi^2 / (6 k) as the terms grow.

    Args:
        k: the number of ones of a structure: k for subsets, n for trees and matchings. A number, or a tensor that
            broadcasts against the scores.
        terms: the number of terms of the sum; 10 is usual.
    """

    def __init__(self, k: float | Tensor, terms: int = 10) -> None:
        self.k = positive(self, "k", k)
        self.terms = at_least(self, "terms", terms, 1)

    def __call__(self, scores: Tensor) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)
        k = torch.as_tensor(self.k, dtype=wide, device=scores.device)
        index = torch.arange(1, self.terms + 1, dtype=wide, device=scores.device)
        index = index.reshape(-1, *[1] * scores.dim())
        shape = (self.terms, *scores.shape)
        gamma = torch.distributions.Gamma((1 / k).expand(shape), (index / k).expand(shape), validate_args=False)
        return ((gamma.sample().sum(0) - math.log(self.terms)) / k).to(scores.dtype)


def noise_or_gumbel(noise: Noise | None) -> Noise:
    """The noise that an option names: None is `Gumbel()`."""
    if noise is not None and not callable(noise):
        raise TypeError(
            f"noise is {noise!r}; it must be a callable from scores to noise of their shape: "
            f"Gumbel(), Normal(), SumOfGamma(k), or a function of your own"
        )
    return Gumbel() if noise is None else noise


def drawn(noise: Noise, scores: Tensor, samples: int = 1) -> Tensor:
    """Noise of the shape of the scores, `[..., *parts]`, or `[samples, ..., *parts]` for several samples.

    Args:
        noise: called once, with scores of the shape that is returned.
        scores: `[..., *parts]`; their values do not matter.
        samples: how many.
    """
    like = scores.detach() if samples == 1 else scores.detach().expand(samples, *scores.shape)
    found = noise(like)
    if found.shape != like.shape:
        raise ValueError(
            f"the noise {noise!r} returned shape {list(found.shape)} for scores of shape {list(like.shape)}; "
            f"it must return noise of the shape of the scores, on their device"
        )
    return found.detach()
