"""Baselines of the score function estimator: what is subtracted from the loss to reduce the variance."""

from __future__ import annotations

import abc
from typing import Literal, get_args

import torch
from torch import Tensor

from pullback.estimators.checks import at_least, up_to_one
from pullback.estimators.stateful import Stateful

Point = Literal["samples", "marginals"]
"""Where the gradient of a control variate is taken: at the other samples, or at the marginals."""


class Baseline(Stateful, abc.ABC):
    """A function from the losses of samples to their advantages, which replace the losses in the gradient.

    A baseline is a module: its buffers hold its averages, so the `state_dict` of a model that holds the estimator saves
    them, and parameters of a baseline of your own.
    """

    samples: int = 1
    """The number of structures drawn per example."""
    with_argmax: bool = False
    """Whether the losses have one more row, the last: the loss of the argmax."""

    @abc.abstractmethod
    def advantages(self, losses: Tensor) -> Tensor:
        """The advantages, `[samples, B]`, of losses `[samples, B]`; without gradients and without synchronising."""


class NoBaseline(Baseline):
    """The losses themselves."""

    def advantages(self, losses: Tensor) -> Tensor:
        return losses


class MovingAverage(Baseline):
    """The paper's baseline: a moving average and a moving standard deviation of the losses.

        advantage = (L - m) / max(1, sqrt(v)),    then    m += f * (mean(L) - m),  v += f * (mean((L - m)^2) - v),

    with m = 0 and v = 1 at first. The average is over earlier batches only, so the baseline adds no bias. Where the
    standard deviation exceeds 1, dividing by it *rescales* the gradient of the scores, which is then an unbiased
    estimate of 1 / sqrt(v) times the gradient of the expected loss. The gradient of the decoder is not rescaled.

    Losses that are not finite are left out of the averages. A batch without finite losses does not change them.
    `same_options` and `to_dict` compare and save the options; the averages are in `state_dict`.

    Args:
        factor: f, in (0, 1].
        groups: the number of equal, consecutive groups of the batch, each with its own average.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, factor: float = 0.05, groups: int = 1) -> None:
        super().__init__()
        self.factor = up_to_one(self, "factor", factor)
        self.groups = at_least(self, "groups", groups, 1)
        self.register_buffer("mean", torch.zeros(groups, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(groups, dtype=torch.float64))

    def advantages(self, losses: Tensor) -> Tensor:
        if losses.numel() % self.groups:
            raise ValueError(f"{losses.numel()} losses do not make {self.groups} groups of equal size: {self!r}")
        self.buffers_to(losses.device)
        mean, variance = self.mean[:, None], self.variance[:, None]
        deviations = losses.double().reshape(self.groups, losses.numel() // self.groups) - mean
        result = (deviations / variance.sqrt().clamp_min(1.0)).reshape(losses.shape).to(losses.dtype)
        self._move(self.variance, mean_of_finite(deviations.square(), self.variance), self.factor)
        self._move(self.mean, mean_of_finite(deviations, torch.zeros_like(self.mean)) + self.mean, self.factor)
        return result

    @staticmethod
    def _move(average: Tensor, towards: Tensor, factor: float) -> None:
        average.copy_(average + factor * (towards - average))


def mean_of_finite(values: Tensor, otherwise: Tensor) -> Tensor:
    """The mean of each row of `[groups, n]` over what is finite; `otherwise`, `[groups]`, for a row without any."""
    finite = values.isfinite()
    count = finite.sum(-1)
    mean = torch.where(finite, values, 0.0).sum(-1) / count.clamp_min(1)
    return torch.where((count > 0) & mean.isfinite(), mean, otherwise)


class LeaveOneOut(Baseline):
    """Several samples per example, each with the mean loss of the others as its baseline.

        advantage_i = L_i - mean over j != i of L_j

    Unbiased, without state. `downstream` is called once per sample, and the objective is the mean of their losses.

    Args:
        samples: at least two.
    """

    def __init__(self, samples: int = 2) -> None:
        super().__init__()
        self.samples = at_least(self, "samples", samples, 2)

    def advantages(self, losses: Tensor) -> Tensor:
        return losses - mean_of_others(losses)


def mean_of_others(values: Tensor) -> Tensor:
    """The mean over the other samples, for each of `[samples, ...]`, of that shape."""
    return (values.sum(0) - values) / (len(values) - 1)


class SelfCritical(Baseline):
    """The loss of the argmax as the baseline, as in self-critical training.

        advantage = L(z) - L(argmax(s))

    Unbiased, without state. `downstream` is called once more, before z, at the argmax, without a gradient.
    """

    with_argmax = True

    def advantages(self, losses: Tensor) -> Tensor:
        return losses[:-1] - losses[-1]


class ControlVariate(Baseline):
    """Several samples per example; the loss of the others, with a linear control variate, is the baseline.

        gradient 1/S sum_i [L_i - beta <g_i, d_i> - b_i] d_i + beta J_Marg(s)' mean(g_i),    d_i = z_i - Marg(s)

    g_i is a gradient of the loss that does not depend on z_i: the mean of gamma at the *other* samples, which needs no
    further call of the decoder, or gamma at Marg(s), which needs one. b_i is the mean of the residual L_j - beta <g_j, d_j>
    over the other samples. E[<g, d> d] = J_Marg(s)' g for a fixed g, so the gradient is unbiased for every loss,
    structure and beta. Where the loss has no gradient for z, this is `LeaveOneOut`.

    The gradient is A - beta C with E[C] = 0. beta is 0 at first, which is `LeaveOneOut`, and later the regression of A on C
    over earlier batches, which minimises the variance:

        covariance <- (1 - rate) covariance + rate mean(<A, C>),  variance <- (1 - rate) variance + rate mean(<C, C>),
        beta = covariance / variance

    It moves in each backward pass; examples that are not finite are left out. The three numbers are buffers, so
    `state_dict` and a model that holds the estimator save them.

    Args:
        samples: at least two.
        rate: of the moving averages, in (0, 1].
        point: where g is taken, `samples` or `marginals`; `marginals` needs a decoder that accepts averages.
        groups: the number of equal, consecutive groups of the batch, each with its own beta.
    """

    beta: Tensor
    covariance: Tensor
    variance: Tensor

    def __init__(self, samples: int = 4, rate: float = 0.01, point: Point = "samples", groups: int = 1) -> None:
        super().__init__()
        self.samples = at_least(self, "samples", samples, 2)
        self.rate = up_to_one(self, "rate", rate)
        self.point = known_point(self, point)
        self.groups = at_least(self, "groups", groups, 1)
        for name in ("beta", "covariance", "variance"):
            self.register_buffer(name, torch.zeros(groups, dtype=torch.float64))

    def advantages(self, losses: Tensor) -> Tensor:
        return losses - mean_of_others(losses)

    def controlled(self, plain: Tensor, control: Tensor) -> Tensor:
        """A - beta C for A and C `[B, ...]`, in float64; then beta moves."""
        plain, control = plain.double(), control.double()
        if len(plain) % self.groups:
            raise ValueError(f"{len(plain)} losses do not make {self.groups} groups of equal size: {self!r}")
        beta = self.beta.repeat_interleave(len(plain) // self.groups)
        found = plain - beta.reshape(-1, *[1] * (plain.dim() - 1)) * control
        products, squares = (plain * control).flatten(1).sum(1), control.square().flatten(1).sum(1)
        finite = products.isfinite() & squares.isfinite()
        for average, values in ((self.covariance, products), (self.variance, squares)):
            grouped = torch.where(finite, values, torch.nan).reshape(self.groups, len(values) // self.groups)
            average.lerp_(mean_of_finite(grouped, average), self.rate)
        self.beta.copy_(torch.where(self.variance > 0, self.covariance / self.variance, 0.0))
        return found


def known_point(owner: object, point: Point) -> Point:
    """The point, if it is one."""
    if point not in get_args(Point):
        raise ValueError(f"{type(owner).__name__}: point is {point!r}; it must be one of {', '.join(get_args(Point))}")
    return point
