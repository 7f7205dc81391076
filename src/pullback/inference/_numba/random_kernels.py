"""The compiled twin of random.py: the same stream of numbers for the same seed."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner
from pullback.inference.front.random import FIRST, GOLDEN, SECOND

_GOLDEN, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(FIRST), np.uint64(SECOND)


@inner
def uniform(seed, drawn):
    """The next float64 in [0, 1) of the stream of an int64 seed, after `drawn` numbers, and the new count."""
    drawn += 1
    x = np.uint64(seed) + np.uint64(drawn) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return np.float64(x >> np.uint64(11)) * 2.0**-53, drawn
