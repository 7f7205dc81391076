"""Counter-based random numbers: a stream for each replica, whatever group it trains in and on whatever device.

Number i of step t of a stream is splitmix64 of (key, t, i), in tensor operations alone: it can be captured in a
CUDA graph, needs no state in a checkpoint but the step, and does not depend on the other replicas.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pullback.parts import Gumbel
from pullback.structures import Categorical

_GOLDEN, _DRAW, _MIX = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def key(*parts: object) -> int:
    """A 64-bit signed integer from a description.

    >>> key("noise", 0) != key("noise", 1)
    True
    """
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little", signed=True)


class Streams:
    """Random numbers for R replicas, one for each key: `per_step` each at every step.

    `step` is the current one, an integer tensor that the owner advances.
    """

    def __init__(self, keys: Sequence[int], per_step: int, step: Tensor) -> None:
        self._keys = torch.tensor(keys, dtype=torch.int64, device=step.device)[:, None]
        self._index = torch.arange(1, per_step + 1, device=step.device) * _signed(_GOLDEN)
        self._stride = _signed(per_step * _GOLDEN)
        self._step = step
        self._draws = 0

    def begin_step(self) -> None:
        """The next draw is the step's first."""
        self._draws = 0

    def uniform(self, dtype: torch.dtype) -> Tensor:
        """`[R, per_step]` in the open interval (0, 1)."""
        bits = 52 if dtype == torch.float64 else 23  # k + 1/2 is then exact, so that 1 cannot appear
        return (_shift(self._next(), 64 - bits).to(dtype) + 0.5) * 2.0**-bits

    def integers(self, shape: Sequence[int]) -> Tensor:
        """Any int64, replica by replica; one draw for each of several samples."""
        draws = math.prod(shape) // (self._keys.numel() * self._index.numel())
        return torch.stack([self._next() for _ in range(draws)]).reshape(*shape)

    def gumbel(self, like: Tensor) -> Tensor:
        """Gumbel(0, 1) noise with the shape and dtype of `like`, replica by replica; one draw for each of several samples."""
        draws = like.numel() // (self._keys.numel() * self._index.numel())
        uniform = torch.stack([self.uniform(like.dtype) for _ in range(draws)])
        return -torch.log(-torch.log(uniform)).reshape(like.shape)

    def _next(self) -> Tensor:
        """64 random bits each, `[R, per_step]`."""
        x = self._keys + (self._index + (self._step * self._stride + _signed(self._draws * _DRAW)))
        self._draws += 1
        x = (x ^ _shift(x, 30)) * _signed(_MIX[0])
        x = (x ^ _shift(x, 27)) * _signed(_MIX[1])
        return x ^ _shift(x, 31)


class StreamedGumbel(Gumbel):
    """Gumbel noise from streams, for estimators."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams

    def __call__(self, scores: Tensor) -> Tensor:
        return self.streams.gumbel(scores)


class StreamedCategorical(Categorical):
    """A categorical that draws its samples from given noise: z = argmax(s + g), g ~ Gumbel(0, 1) on each class."""

    def __init__(self, noise: Callable[[Tensor], Tensor], *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self._noise = noise

    def sample(self, scores: Tensor, generator: torch.Generator | None = None, *, samples: int | None = None) -> Tensor:
        scores = scores if samples is None else scores.expand(samples, *scores.shape)
        return self.argmax(scores + self._noise(scores))


def _shift(x: Tensor, places: int) -> Tensor:
    """A logical shift to the right: int64 has the arithmetic one only."""
    return (x >> places) & ((1 << (64 - places)) - 1)


def _signed(value: int) -> int:
    """The int64 with these bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
