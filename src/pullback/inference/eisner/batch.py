"""A batch of sentences as the kernels take it, and the second and third try for those that leave a kernel's range."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.lanes import BYTES

OUT_OF_RANGE = -1  # a status of this folder's own: to be computed again in a wider range


class Batch:
    """Scores and lengths as arrays, the sentences in order of falling length, and a status for each.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`; out of range is an error here, before any kernel runs.
        extra: something else that each sentence has, `[B, ...]`, contiguous.
    """

    def __init__(self, scores: Tensor, lengths: Tensor, extra: Tensor | None = None) -> None:
        self.scores = scores.detach().contiguous()
        self.lengths = lengths
        self.extra = extra
        n, length = scores.shape[-1], lengths.numpy()
        if len(length) and (length.min() < 0 or length.max() > n):
            checks.raise_for(((lengths < 0) | (lengths > n)) * checks.BAD_LENGTH, lengths, n)
        self.order = np.argsort(-length, kind="stable")
        self.status = np.zeros(len(length), np.int64)
        self.arrays = self.scores.numpy(), length, self.order

    def leave_out(self, sentences: np.ndarray) -> None:
        """Keep some sentences, a mask, from the first attempt: they go to the next one at once."""
        self.status[sentences] = OUT_OF_RANGE
        self.order = self.order[~sentences[self.order]]
        self.arrays = *self.arrays[:2], self.order

    def cost(self, sweeps: float) -> tuple[int, float]:
        """How many groups of lanes there are, and about how many operations so many sweeps over the splits take."""
        scores, length, order = self.arrays
        lanes = BYTES // scores.itemsize
        return -(-len(order) // lanes), sweeps / 6 * float((length[order].astype(float) ** 3).sum())

    def check(self, validate: bool) -> None:
        """Raise for the first sentence with trouble, if asked."""
        if validate and self.status.any():
            checks.raise_for(torch.from_numpy(self.status), self.lengths, self.scores.shape[-1])


Attempt = Callable[[Batch], Tensor]


def widening(batch: Batch, attempts: Sequence[Attempt]) -> Tensor:
    """Run the first attempt, and the next ones in float64 on the sentences it left OUT_OF_RANGE."""
    result = attempts[0](batch)
    outside = batch.status == OUT_OF_RANGE
    if outside.any():
        left = slice(None) if outside.all() else torch.from_numpy(outside)
        extra = None if batch.extra is None else batch.extra[left]
        if extra is not None and extra.is_floating_point():
            extra = extra.double()
        part = Batch(batch.scores[left].double(), batch.lengths[left], extra)
        result[left] = widening(part, attempts[1:]).to(result.dtype)
        batch.status[outside] = part.status
    return result
