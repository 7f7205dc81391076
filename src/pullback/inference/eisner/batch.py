"""A batch of sentences as the kernels take it, and the second and third try for those that leave a kernel's range."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.compile import lean_kernel
from pullback.inference.lanes import BYTES
from pullback.inference.scratch import scratch
from pullback.inference.threads import spread

OUT_OF_RANGE = -1  # a status of this folder's own: to be computed again in a wider range


@lean_kernel
def by_length(lengths, n, starts, order):
    """Write the sentences in order of falling length; returns the sum of the cubed lengths and the longest.

    One compiled call: for short sentences NumPy's own dispatch would take as long as inference. A length outside 0..n
    makes the longest n + 1. `starts` is n + 2 zeros.
    """
    cubes = 0.0
    for length in lengths:
        if length < 0 or length > n:
            return 0.0, n + 1
        starts[n - length + 1] += 1  # a counting sort, stable
        cubes += float(length) * length * length
    longest = 0
    for place in range(1, n + 2):
        if starts[place] > 0:
            longest = n - place + 1 if n - place + 1 > longest else longest
        starts[place] += starts[place - 1]
    for sentence in range(len(lengths)):
        place = n - lengths[sentence]
        order[starts[place]] = sentence
        starts[place] += 1
    return cubes, longest


class Batch:
    """Scores and lengths as arrays, the sentences in order of falling length, and a status for each.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`; a sentence whose length is out of range counts as empty, and its status says so.
        extra: something else that each sentence has, `[B, ...]`, contiguous.
    """

    def __init__(self, scores: Tensor, lengths: Tensor, extra: Tensor | None = None) -> None:
        self.scores = scores.detach().contiguous()
        self.lengths = lengths.contiguous()
        self.extra = extra
        n, length = scores.shape[-1], self.lengths.numpy()
        self.order = np.empty(len(length), np.int64)
        self.status = np.zeros(len(length), np.int64)
        self.cubes, self.longest = by_length(length, n, np.zeros(n + 2, np.int64), self.order)
        self._beyond = None
        if self.longest > n:
            self._beyond = (length < 0) | (length > n)
            length = np.where(self._beyond, 0, length)
            self.cubes, self.longest = by_length(length, n, np.zeros(n + 2, np.int64), self.order)
        self.arrays = self.scores.numpy(), length, self.order

    def leave_out(self, sentences: np.ndarray) -> None:
        """Keep some sentences, a mask, from the first attempt: they go to the next one at once."""
        self.status[sentences] = OUT_OF_RANGE
        self.order = self.order[~sentences[self.order]]
        self.arrays = *self.arrays[:2], self.order
        self.cubes = float((self.arrays[1][self.order].astype(float) ** 3).sum())

    def run(self, kernel: Callable[..., None], sweeps: float, charts: int, multiroot: bool, *arrays: np.ndarray) -> None:
        """Run a kernel of so many sweeps over the splits, with scratch for so many charts and 16 lines per thread.

        In float32 lanes an operation takes about a sixth of the time that `spread` counts on, in float64 a third.
        """
        bytes_each, n = self.scores.itemsize, self.longest
        groups, work = -(-len(self.order) * bytes_each // BYTES), sweeps / 6 * self.cubes * bytes_each / 24
        room = scratch(groups, BYTES * (charts * n * (n + 1) + 16 * (n + 1) + 32))
        spread(kernel, len(room), work, *self.arrays, multiroot, room, *arrays, self.status)

    def settle(self, result: Tensor, validate: bool) -> Tensor:
        """Raise for the first sentence with trouble, if asked; otherwise its result is NaN."""
        if self._beyond is not None:
            self.status[self._beyond] = checks.BAD_SIZE
        return checks.settled(result, self.status, validate)


Attempt = Callable[[Batch], Tensor]


def widening(batch: Batch, attempts: Sequence[Attempt]) -> Tensor:
    """Run the first attempt, and the next ones in float64 on the sentences it left OUT_OF_RANGE."""
    result = attempts[0](batch)
    if batch.status.any() and (outside := batch.status == OUT_OF_RANGE).any():
        left = slice(None) if outside.all() else torch.from_numpy(outside)
        extra = None if batch.extra is None else batch.extra[left]
        if extra is not None and extra.is_floating_point():
            extra = extra.double()
        part = Batch(batch.scores[left].double(), torch.from_numpy(batch.arrays[1])[left], extra)
        result[left] = widening(part, attempts[1:]).to(result.dtype)
        batch.status[outside] = part.status
    return result
