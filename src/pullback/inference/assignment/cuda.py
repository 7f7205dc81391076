"""Matchings of CUDA tensors: solved on the CPU.

The search is a long chain of dependent steps, which a GPU does slowly; the copies take microseconds.
"""

from __future__ import annotations

from torch import Tensor

from pullback.inference.assignment import cpu


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    """Synchronises: the scores are copied to the CPU and the matchings back."""
    return cpu.argmax(scores.cpu(), lengths.cpu(), other_lengths.cpu(), validate).to(scores.device)
