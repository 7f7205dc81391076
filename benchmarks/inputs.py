"""What inference is timed on: random normal scores, full batches and a ragged one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

RAGGED = 50  # the longest sentence of the ragged batch


@dataclass(frozen=True)
class Case:
    """A batch of scores, packed: head x modifier, the root on the diagonal.

    Attributes:
        label: what the tables call it.
        threads: how many threads everybody may use.
        scores: `[B, n, n]`.
        lengths: `[B]`, or None for a full batch.
        direction: `[B, n, n]`, the gradient that comes from downstream, zero on padding.
    """

    label: str
    threads: int
    scores: Tensor
    lengths: Tensor | None
    direction: Tensor

    @property
    def words(self) -> list[int]:
        """The number of words of each sentence."""
        batch, n = self.scores.shape[:2]
        return [n] * batch if self.lengths is None else self.lengths.tolist()

    @property
    def mask(self) -> Tensor:
        """Where there are words rather than padding, `[B, n, n]`."""
        n = self.scores.shape[-1]
        lengths = torch.tensor(self.words, device=self.scores.device)
        inside = torch.arange(n, device=self.scores.device) < lengths[:, None]
        return inside[:, :, None] & inside[:, None, :]


def full(n: int, batch: int, *, threads: int, device: str) -> Case:
    """A batch of sentences of n words."""
    return _case(f"n = {n}", n, batch, None, threads, device)


def ragged(batch: int, *, threads: int, device: str) -> Case:
    """A batch with the lengths of SST: mean 19, up to 50."""
    return _case("ragged", RAGGED, batch, sst_lengths(batch), threads, device)


def sst_lengths(batch: int) -> Tensor:
    """Lengths like those of SST's sentences, a gamma distribution of mean 19; the longest is 50."""
    drawn = np.random.default_rng(0).gamma(shape=4.2, scale=19 / 4.2, size=batch)
    lengths = torch.from_numpy(drawn).round().long().clamp(2, RAGGED)
    lengths[lengths.argmax()] = RAGGED
    return lengths


def _case(label: str, n: int, batch: int, lengths: Tensor | None, threads: int, device: str) -> Case:
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(batch, n, n, generator=generator)
    direction = torch.randn(batch, n, n, generator=generator)
    case = Case(label, threads, scores, lengths, direction)
    return Case(
        label,
        threads,
        scores.to(device),
        None if lengths is None else lengths.to(device),
        torch.where(case.mask, direction, 0.0).to(device),
    )
