"""Large finite masks: which scores only say that a part must not be used."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators.checks import event_dims
from pullback.structures import Structure

MASK = -1e8
"""A score counts as a mask from here down, or from the smallest number of its dtype (-65504 in float16)."""
FAR = 10.0
"""How many times as far from zero as the largest score above `MASK` in its structure a mask must be."""


def counted(structure: Structure, scores: Tensor) -> Tensor:
    """The parts whose scores have a size, `[..., *parts]` of bool: those that are allowed and have no mask for a score.

    A mask is a score of at most `MASK` that is `FAR` times as far from zero as the largest score above `MASK` of the same
    structure. If there is none above, no score is a mask.

    >>> from pullback import Categorical
    >>> counted(Categorical(), torch.tensor([[1e6, 0.0, -1e9, -torch.inf], [3e9, 0.0, -4e9, -1e9]]))
    tensor([[ True,  True, False, False],
            [ True,  True,  True,  True]])
    """
    scores = scores.detach()
    allowed = structure.allowed(scores)
    low = scores <= max(MASK, torch.finfo(scores.dtype).min)
    # In float64, where -10 times the largest number of every other dtype is finite.
    others = torch.where(allowed & ~low, scores.double().abs(), -1.0)
    dims = event_dims(structure)
    largest = others.amax(dims, keepdim=True) if others.numel() else others.sum(dims, keepdim=True)
    return allowed & ~(low & (largest >= 0) & (scores.double() <= -FAR * largest))
