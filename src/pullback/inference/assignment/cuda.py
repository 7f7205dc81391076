"""Matchings of CUDA tensors: solved on the CPU.

The search is a long chain of dependent steps, which a GPU does slowly; the copies take microseconds.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pullback.inference.assignment import cpu
from pullback.inference.front.checks import capturing


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    """Synchronises: the scores are copied to the CPU and the matchings back."""
    return cpu.argmax(scores.cpu(), lengths.cpu(), other_lengths.cpu(), validate).to(scores.device)


def sparsemap(scores: Tensor, *rest: Any, validate: bool) -> tuple[Tensor, ...]:
    """The whole search on the CPU: one copy there and one back, not one for each matching that it asks for."""
    from pullback.inference.assignment.family import MATCHING

    if capturing(scores):
        raise RuntimeError("matchings are solved on the CPU, which a CUDA graph cannot do: leave them out of its capture")
    copies = [x.cpu() if isinstance(x, Tensor) else x for x in (scores, *rest)]
    found = MATCHING.implementation("sparsemap", "cpu", ())(*copies, validate=validate)
    return tuple(x.to(scores.device) for x in found)
