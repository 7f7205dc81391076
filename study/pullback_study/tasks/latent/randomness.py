"""The random numbers of a run: its own, whatever else the process draws."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from pullback_study.runs.files import content_hash


class RandomNumbers:
    """The state of PyTorch's default generators, put in place while the run computes.

    Dropout can only draw from the default generators, so all noise of a run does.

    Args:
        device: whose generator is used, beside the CPU's.
        parts: plain values that the seed is made of.
    """

    def __init__(self, device: torch.device, *parts: str | int) -> None:
        self._device = device
        self.state: list[Tensor] = []
        before = self._current()
        torch.manual_seed(int(content_hash(list(parts)), 16))
        self.state = self._current()
        self._put(before)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Draw from this run's numbers inside; others continue afterwards as if nothing had been drawn."""
        before = self._current()
        self._put(self.state)
        try:
            yield
        finally:
            self.state = self._current()
            self._put(before)

    def restore(self, state: list[Tensor]) -> None:
        """Go on from an earlier `state`; a generator that it does not have, of another device, keeps its own."""
        self.state = [*state[: len(self.state)], *self.state[len(state) :]]

    def _current(self) -> list[Tensor]:
        accelerator = [torch.cuda.get_rng_state(self._device)] if self._device.type == "cuda" else []
        return [torch.get_rng_state(), *accelerator]

    def _put(self, state: list[Tensor]) -> None:
        torch.set_rng_state(state[0])
        if len(state) > 1:
            torch.cuda.set_rng_state(state[1], self._device)
