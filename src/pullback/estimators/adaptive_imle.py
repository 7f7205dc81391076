"""Adaptive implicit maximum likelihood estimation (Minervini et al., 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, needs_objective
from pullback.estimators.checks import at_least, in_unit_interval, not_negative, positive, switch
from pullback.estimators.forward import Gammas, examples_of, forward_losses
from pullback.estimators.masks import counted
from pullback.estimators.noise import Gumbel, Noise, noise_or_gumbel
from pullback.estimators.starts import FromPerturbedArgmax
from pullback.estimators.stateful import Stateful
from pullback.estimators.surrogate import Rule, point_with
from pullback.inference.front.layout import working
from pullback.structures import Structure


class AdaptiveIMLE(Stateful, Estimator):
    """AIMLE: I-MLE whose step size adapts to the scale of scores and gradients, and to the share of zero gradients.

        z_i = argmax(s + T g_i),    eta_i = alpha norm(s) / norm(gamma_i)  for each example,
        gradient mean over i of [z_i - argmax(s + T g_i - eta_i gamma_i)] / eta_i

    or, with `symmetric`, [argmax(s + T g_i + eta_i gamma_i) - argmax(s + T g_i - eta_i gamma_i)] / (2 eta_i). Norms
    are over the parts of one example, so a gradient does not depend on the rest of the batch. Where a norm is zero,
    the gradient is zero. Large finite masks act like -inf: a score of at most -1e8 (in float16, the smallest number) that is
    ten times as far from zero as the largest score above that in its structure counts in neither norm.

    In each backward pass alpha takes a step of `rate`, up if a moving average of the number of non-zeros of an
    example's gradient (of each sample, averaged over the batch) is below 1, down if it is above:

        m <- decay m + (1 - decay) non-zeros,    alpha <- max(0, alpha + rate sign(1 - m)),    m = 1 at first

    alpha and m are buffers, so `state_dict` and a model that holds the estimator save them. `alpha` is the current value.

    Args:
        alpha: the first value of alpha.
        rate: the size of the steps of alpha.
        decay: the decay of the moving average, in [0, 1).
        temperature: T >= 0, the scale of the noise; 0 for none.
        noise: from scores to noise of their shape, on their device; None is `Gumbel()`.
        samples: the number of z per example, found by one call of `argmax`. A layer takes only one.
        symmetric: make a step to both sides, with one more call of `argmax`.
        groups: the number of equal, consecutive groups of the batch, each with its own alpha.
    """

    _unlisted: ClassVar[Mapping[str, Any]] = {"noise": Gumbel()}
    alpha: Tensor
    nonzeros: Tensor

    def __init__(
        self,
        alpha: float = 1.0,
        rate: float = 1e-3,
        decay: float = 0.9,
        temperature: float = 1.0,
        noise: Noise | None = None,
        samples: int = 1,
        symmetric: bool = False,
        groups: int = 1,
    ) -> None:
        Stateful.__init__(self)
        self._first_alpha = positive(self, "alpha", alpha)
        self.rate = not_negative(self, "rate", rate)
        self.decay = in_unit_interval(self, "decay", decay)
        self.temperature = not_negative(self, "temperature", temperature)
        self.noise = noise_or_gumbel(noise)
        self.samples = at_least(self, "samples", samples, 1)
        self.symmetric = switch(self, "symmetric", symmetric)
        self.groups = at_least(self, "groups", groups, 1)
        self._start = FromPerturbedArgmax(temperature, noise, samples)
        shape = () if groups == 1 else (groups,)
        self.register_buffer("alpha", torch.full(shape, float(alpha), dtype=torch.float64))
        self.register_buffer("nonzeros", torch.ones(shape, dtype=torch.float64))

    def options(self) -> dict[str, Any]:
        return super().options() | {"alpha": self._first_alpha}

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        rule = self._rule(structure, scores.detach())
        return forward_losses(structure, scores, downstream, self._start, rule, owner=self)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        if self.samples > 1:
            raise needs_objective(self, "the decoder sees several samples, one after the other")
        rule = self._rule(structure, scores.detach())
        return point_with(structure, self._start.perturbed(scores), self._start.point, rule, examples=None)[0]

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)

    def _rule(self, structure: Structure, unperturbed: Tensor) -> Rule:
        def rule(scores: Tensor, z: Tensor, gamma: Tensor) -> Tensor:
            examples = examples_of(structure, scores, self._start)
            sized = counted(structure, unperturbed)
            gammas = Gammas(sized, examples)
            gamma = gammas.read(gamma).double()
            known = torch.where(sized, unperturbed, 0.0).double()
            size, length = _norm(known, examples - int(self.samples > 1)), _norm(gamma, examples)
            self.buffers_to(scores.device)
            eta = _like(self._alphas(length.shape) * torch.where(length == 0, 0.0, size / length), gamma)
            difference = self._difference(structure, scores, z, eta * gamma, structure.allowed(scores))
            self._adapt(difference, examples)
            sides = 2 if self.symmetric else 1
            return gammas.mark(torch.where(eta == 0, 0.0, difference / (sides * eta)))

        return rule

    def _difference(self, structure: Structure, scores: Tensor, z: Tensor, step: Tensor, allowed: Tensor) -> Tensor:
        def best(scores: Tensor) -> Tensor:
            return structure.argmax(torch.where(allowed, scores, -torch.inf).to(dtype))

        dtype = working(z).dtype
        return (best(scores + step) if self.symmetric else z) - best(scores - step)

    def _alphas(self, batch: torch.Size) -> Tensor:
        """That of each example's group: a number, or `[B]`."""
        if self.groups == 1:
            return self.alpha
        if batch[-1] % self.groups:
            raise ValueError(f"{batch[-1]} examples do not make {self.groups} groups of equal size: {self!r}")
        return self.alpha.repeat_interleave(batch[-1] // self.groups)

    def _adapt(self, difference: Tensor, examples: int) -> None:
        if difference.numel() == 0:
            return
        counts = (difference != 0).flatten(examples).sum(-1).double()
        found = counts.mean() if self.groups == 1 else counts.unflatten(-1, (self.groups, -1)).mean(-1)
        found = found if found.shape == self.nonzeros.shape else found.mean(0)  # over the samples
        self.nonzeros.lerp_(found, 1 - self.decay)
        self.alpha.add_(self.rate * torch.sign(1 - self.nonzeros)).clamp_min_(0.0)


def _norm(values: Tensor, examples: int) -> Tensor:
    return torch.linalg.vector_norm(values.flatten(examples), dim=-1)


def _like(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(values.shape + (1,) * (like.dim() - values.dim()))
