"""Matchings of CUDA tensors: solved on the CPU.

The search is a long chain of dependent steps, which a GPU does slowly; the copies take microseconds.
"""

from __future__ import annotations

import functools
from typing import Any

from torch import Tensor

from pullback.inference import offload
from pullback.inference.assignment import cpu


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    """Synchronises: the scores are copied to the CPU and the matchings back."""
    return cpu.argmax(scores.cpu(), lengths.cpu(), other_lengths.cpu(), validate).to(scores.device)


def sparsemap(scores: Tensor, *rest: Any, validate: bool) -> tuple[Tensor, ...]:
    """The whole search on the CPU: one copy there and one back, not one for each matching that it asks for."""
    from pullback.inference.assignment.family import MATCHING

    if offload.capturing(scores):
        raise RuntimeError("matchings are solved on the CPU, which a CUDA graph cannot do: leave them out of its capture")
    solve = MATCHING.implementation("sparsemap", "cpu", ())
    return offload.on_the_cpu(functools.partial(solve, validate=validate), (scores, *rest), None)
