"""Baselines of the score function estimator: what is subtracted from the loss to reduce the variance."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pullback.estimators.checks import at_least
from pullback.estimators.config import Configured


class Baseline(Configured, abc.ABC):
    """From the losses of samples to their advantages, which stand in the place of the losses."""

    samples: int = 1
    """How many structures are drawn for each example."""

    @abc.abstractmethod
    def advantages(self, losses: Tensor) -> Tensor:
        """`[samples, B]` of losses to `[samples, B]`, without gradients and without waiting for the device."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state:
            raise ValueError(f"{self!r} has no state, and was given {sorted(state)}")


class NoBaseline(Baseline):
    """The losses themselves."""

    def advantages(self, losses: Tensor) -> Tensor:
        return losses


class MovingAverage(Baseline):
    """The paper's baseline: a moving average and a moving standard deviation of the losses.

        advantage = (L - m) / max(1, sqrt(v)),    then    m += f * (mean(L) - m),  v += f * (mean((L - m)^2) - v),

    with m = 0 and v = 1 at first. The average is of earlier batches only, so the baseline adds no bias; but where the
    standard deviation passes 1, dividing by it *rescales* the gradient of the scores: it is then an unbiased
    estimate of 1 / sqrt(v) times the gradient of the expected loss. The gradient of the decoder is not rescaled.

    Losses are `[B]` (`[B, ...]` scores have one loss an example). Equality and `to_dict` are about the options, not
    about what has been averaged so far: that is in `state_dict`.

    Args:
        factor: f, in (0, 1].
        groups: how many equal, consecutive groups of the batch have an average each.
    """

    def __init__(self, factor: float = 0.05, groups: int = 1) -> None:
        if not 0 < factor <= 1:
            raise ValueError(f"MovingAverage: factor is {factor!r}; it must be in (0, 1]")
        self.factor = factor
        self.groups = at_least(self, "groups", groups, 1)
        self.mean = torch.zeros(groups, dtype=torch.float64)
        self.variance = torch.ones(groups, dtype=torch.float64)

    def advantages(self, losses: Tensor) -> Tensor:
        if losses.numel() % self.groups:
            raise ValueError(f"{losses.numel()} losses do not make {self.groups} groups of equal size: {self!r}")
        self._to(losses.device)
        mean, variance = self.mean[:, None], self.variance[:, None]
        deviations = losses.double().reshape(self.groups, -1) - mean
        result = (deviations / variance.sqrt().clamp_min(1.0)).reshape(losses.shape).to(losses.dtype)
        self.variance.lerp_(deviations.square().mean(-1), self.factor)
        self.mean.add_(deviations.mean(-1), alpha=self.factor)
        return result

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean.clone(), "variance": self.variance.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in ("mean", "variance"):
            value = state[name]
            if value.shape != (self.groups,):
                raise ValueError(f"{name} has shape {list(value.shape)}; {self!r} needs [{self.groups}]")
            getattr(self, name).copy_(value)

    def _to(self, device: torch.device) -> None:
        if self.mean.device != device:
            self.mean, self.variance = self.mean.to(device), self.variance.to(device)


class LeaveOneOut(Baseline):
    """Several samples for each example, each with the mean loss of the others as its baseline.

        advantage_i = L_i - mean over j != i of L_j

    Unbiased, without state. `downstream` is called once for each sample, and the objective is the mean of
    their losses.

    Args:
        samples: at least two.
    """

    def __init__(self, samples: int = 2) -> None:
        self.samples = at_least(self, "samples", samples, 2)

    def advantages(self, losses: Tensor) -> Tensor:
        return (losses - losses.mean(0)) * (self.samples / (self.samples - 1))
