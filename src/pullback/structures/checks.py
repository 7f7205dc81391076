"""Errors about the arguments of structures, and about what an argmax of one's own returns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def check_limit(max_iterations: object, tolerance: object) -> None:
    """Raise if these are no limits of SparseMAP's search."""
    if max_iterations is not None and not (isinstance(max_iterations, int | np.integer) and max_iterations >= 1):
        raise ValueError(f"max_iterations is {max_iterations!r}; it must be an integer of at least 1, or None")
    if tolerance is not None and not (isinstance(tolerance, int | float) and tolerance >= 0):
        raise ValueError(f"tolerance is {tolerance!r}; it must be a number of at least 0, or None")


def of_one_shape(argmax: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """An argmax, after a look at the shape of what it returns."""

    @functools.wraps(argmax)
    def checked(self: Any, scores: Tensor) -> Tensor:
        z = argmax(self, scores)
        if not isinstance(z, Tensor) or z.shape != scores.shape:
            got = list(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(
                f"{type(self).__name__}.argmax returned {got} for scores of shape {list(scores.shape)}; "
                f"it must return a structure for each example, in the shape of the scores"
            )
        return z

    return checked


def repeated(scores: Tensor, samples: object, generator: object) -> Tensor:
    """Scores `[samples, ..., *parts]` for several samples, or as they are."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator is {generator!r}; it must be a torch.Generator, or None. For several samples pass samples={generator!r}"
        )
    if samples is None:
        return scores
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer | torch.SymInt) or samples < 0:
        raise ValueError(f"samples is {samples!r}; it must be an integer of at least 0, or None for one sample")
    return scores.expand(int(samples) if isinstance(samples, np.integer) else samples, *scores.shape)
