"""Baselines of the score function estimator: what is subtracted from the loss to reduce the variance."""

from __future__ import annotations

import abc

import torch
from torch import Tensor

from pullback.estimators.checks import at_least, up_to_one
from pullback.estimators.stateful import Stateful


class Baseline(Stateful, abc.ABC):
    """A function from the losses of samples to their advantages, which replace the losses in the gradient.

    A baseline is a module: its buffers hold its averages, so the `state_dict` of a model that holds the estimator saves
    them, and parameters of a baseline of your own.
    """

    samples: int = 1
    """The number of structures drawn per example."""

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
        self._buffers_to(losses.device)
        mean, variance = self.mean[:, None], self.variance[:, None]
        deviations = losses.double().reshape(self.groups, losses.numel() // self.groups) - mean
        result = (deviations / variance.sqrt().clamp_min(1.0)).reshape(losses.shape).to(losses.dtype)
        self._move(self.variance, _mean_of_finite(deviations.square(), self.variance), self.factor)
        self._move(self.mean, _mean_of_finite(deviations, torch.zeros_like(self.mean)) + self.mean, self.factor)
        return result

    @staticmethod
    def _move(average: Tensor, towards: Tensor, factor: float) -> None:
        average.copy_(average + factor * (towards - average))


def _mean_of_finite(values: Tensor, otherwise: Tensor) -> Tensor:
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
        return (losses - losses.mean(0)) * (self.samples / (self.samples - 1))
