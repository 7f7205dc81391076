"""Random numbers from a seed and a counter (splitmix64): the same stream on every backend, with no state to share."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def uniforms(seeds: Tensor, drawn: int, count: int) -> Tensor:
    """The next `count` numbers of the streams of seeds `[B]`, after `drawn` numbers of each, `[B, count]`, float64."""
    counters = torch.arange(drawn + 1, drawn + count + 1, device=seeds.device)
    x = seeds[:, None] + counters * _signed(GOLDEN)
    x = (x ^ _shifted(x, 30)) * _signed(FIRST)
    x = (x ^ _shifted(x, 27)) * _signed(SECOND)
    return _shifted(x ^ _shifted(x, 31), 11).double() * 2.0**-53


def advanced(seeds: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Seeds `[B]` of what is left of the streams after `drawn` `[B]` numbers."""
    return seeds + drawn * np.int64(_signed(GOLDEN))


def _signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


def _shifted(x: Tensor, bits: int) -> Tensor:
    """As if x were unsigned."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
