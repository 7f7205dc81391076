"""Random numbers from a seed and a counter (splitmix64): the same stream on every backend, with no state to share."""

from __future__ import annotations

from collections.abc import Callable

GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def stream(seed: int) -> Callable[[], float]:
    """A function that returns the stream's next float64 in [0, 1) at each call."""
    counter = 0

    def uniform() -> float:
        nonlocal counter
        counter += 1
        x = (seed + counter * GOLDEN) & _MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((x ^ (x >> 31)) >> 11) * 2.0**-53

    return uniform
