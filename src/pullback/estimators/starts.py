"""Where the inner steps start: mu^(0)."""

from __future__ import annotations

import abc
from typing import ClassVar

import torch
from torch import Tensor

from pullback.estimators.config import Configured
from pullback.estimators.inference import Inference


class Start(Configured, abc.ABC):
    """The first guess of the pulled-back label, mu^(0)."""

    is_forward: ClassVar[bool] = False
    """Whether mu^(0) is the z of the forward pass: its gamma then comes with the ordinary backward pass."""
    is_marginals: ClassVar[bool] = False
    """Whether mu^(0) = Marg(s), which a mirror step needs."""

    @abc.abstractmethod
    def mu(self, inference: Inference) -> Tensor:
        """mu^(0), of the shape of the scores."""


class FromArgmax(Start):
    """mu^(0) = argmax(s): the start of STE-I and SPIGOT. The first step costs no decoder call."""

    is_forward: ClassVar[bool] = True

    def mu(self, inference: Inference) -> Tensor:
        return inference.argmax


class FromMarginals(Start):
    """mu^(0) = Marg(s): the start of SPIGOT-CE and SPIGOT-EG."""

    is_marginals: ClassVar[bool] = True

    def mu(self, inference: Inference) -> Tensor:
        return inference.marginals()


class FromZero(Start):
    """mu^(0) = 0, outside of the polytope."""

    def mu(self, inference: Inference) -> Tensor:
        return torch.zeros_like(inference.argmax)
