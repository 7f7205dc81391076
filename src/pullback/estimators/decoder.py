"""Calls the decoder again, for gamma at another point, as if it had not been called.

An inner call sees the forward pass's autocast state and random numbers, so that a dropout mask, say, is the same at
every point, and it leaves no trace: no `.grad`, no change of the random number generators, and none of the
buffers (batch-norm's running statistics) of the modules that `downstream` names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pullback.estimators.base import Downstream
from pullback.estimators.buffers import buffers_kept
from pullback.estimators.checks import losses_of, warn_unused
from pullback.inference._torch.derivatives import transforming
from pullback.structures import Structure


class Decoder:
    """`downstream` and the conditions it runs under at the time this object is made: just before the forward's call.

    The random numbers are those of the CPU's default generator and of the one of the scores' device. While a CUDA graph
    is captured generators cannot be rewound, and each call draws its own.
    """

    def __init__(self, structure: Structure, scores: Tensor, downstream: Downstream, owner: object | None = None) -> None:
        kind = scores.device.type
        self._structure = structure
        self._scores = scores.detach()
        self._downstream = downstream
        self._owner = owner
        self._autocast: dict[str, Any] = {
            "device_type": kind,
            "enabled": torch.is_autocast_enabled(kind),
            "dtype": torch.get_autocast_dtype(kind),
            "cache_enabled": torch.is_autocast_cache_enabled(),
        }
        self._random = _random_state(scores.device)

    def losses(self, mu: Tensor) -> Tensor:
        """The losses at mu, `[B]`, without a gradient."""
        with torch.no_grad(), self._conditions():
            return losses_of(self._structure, self._scores, self._downstream(mu.clone()))

    def gamma(self, mu: Tensor) -> Tensor:
        """The gradient of each example's loss at mu, `[B, ..., *parts]`."""
        with torch.enable_grad(), self._conditions():
            if transforming():
                return torch.func.grad(self._total)(mu.detach())  # type: ignore[no-any-return]
            leaf = mu.detach().requires_grad_()
            (gamma,) = torch.autograd.grad(self._total(leaf), leaf, allow_unused=True)
        if gamma is not None:
            return gamma
        if self._owner is not None:
            warn_unused(self._owner)
            self._owner = None  # one warning for all inner steps
        return torch.zeros_like(mu)

    @contextlib.contextmanager
    def _conditions(self) -> Iterator[None]:
        with (
            torch.autocast(**self._autocast),
            _random_numbers(self._random, self._scores.device),
            buffers_kept(self._downstream),
        ):
            yield

    def _total(self, mu: Tensor) -> Tensor:
        losses = losses_of(self._structure, self._scores, self._downstream(mu))
        if not losses.requires_grad:
            raise RuntimeError(
                "downstream(mu) returned losses without a gradient; compute them from mu by differentiable "
                "operations: inner steps need the decoder's gradient at averages of structures, and ScoreFunction() needs none"
            )
        return losses.sum()


def _random_state(device: torch.device) -> list[Tensor] | None:
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return None
    accelerator = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *accelerator]


def _set_random_state(state: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(state[0])
    if len(state) > 1:
        torch.cuda.set_rng_state(state[1], device)


@contextlib.contextmanager
def _random_numbers(state: list[Tensor] | None, device: torch.device) -> Iterator[None]:
    """Draw from `state` inside, and continue afterwards as if nothing had been drawn."""
    before = _random_state(device)
    if state is None or before is None:
        yield
        return
    _set_random_state(state, device)
    try:
        yield
    finally:
        _set_random_state(before, device)
