"""Projective dependency trees on the CPU: compiled, several sentences in SIMD lanes, groups of them over threads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.checks import INFEASIBLE, INFINITE, NAN
from pullback.inference.compile import kernel
from pullback.inference.eisner import maximum
from pullback.inference.eisner.packing import lanes_of, pack, pitch_of
from pullback.inference.lanes import BYTES, aligned
from pullback.inference.threads import spread


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = Batch(scores, lengths)
    z = torch.empty_like(batch.scores)
    status = np.zeros(len(batch.order), np.int64)
    spread(_argmax, *batch.cost(3), batch.array, batch.lengths, batch.order, multiroot, z.numpy(), status)
    batch.check(status, validate)
    return z


class Batch:
    """A batch as the kernels take it: arrays, and the sentences in order of falling length."""

    def __init__(self, scores: Tensor, lengths: Tensor) -> None:
        self.scores = scores.detach().contiguous()
        self.array = self.scores.numpy()
        self.lengths = lengths.numpy()
        n = scores.shape[-1]
        if len(self.lengths) and (self.lengths.min() < 0 or self.lengths.max() > n):
            bad = (self.lengths < 0) | (self.lengths > n)
            checks.raise_for(torch.from_numpy(bad * checks.BAD_LENGTH), lengths, n)
        self.order = np.argsort(-self.lengths, kind="stable")

    def cost(self, passes: float) -> tuple[int, float]:
        """Groups of lanes, and about how many operations `passes` half-cubes of the lengths are."""
        lanes = BYTES // self.array.itemsize
        return -(-len(self.order) // lanes), passes / 6 * float((self.lengths.astype(float) ** 3).sum())

    def check(self, status: np.ndarray, validate: bool) -> None:
        if validate and status.any():
            checks.raise_for(torch.from_numpy(status), torch.from_numpy(self.lengths), self.array.shape[-1])


@kernel
def _argmax(worker, workers, scores, lengths, order, multiroot, z, status):
    n = scores.shape[-1]
    lanes = lanes_of(scores)
    first = worker * lanes
    if first >= len(order):
        return
    largest = lengths[order[first]]
    packed = aligned(largest * pitch_of(largest) * lanes, scores)
    work = maximum.workspace(largest, scores)
    heads = np.empty((lanes, max(largest, 1)), np.int16)
    lane_lengths, codes, best = aligned(lanes, scores), aligned(lanes, scores), aligned(lanes, scores)
    bases = np.empty(lanes, np.int64)
    for group in range(first, len(order), workers * lanes):
        size = pack(scores, n, order, group, lengths, packed, lane_lengths, bases, codes)
        maximum.best_heads(packed, size, lane_lengths, multiroot, work, heads, best)
        for lane in range(min(lanes, len(order) - group)):
            sentence = order[group + lane]
            z[sentence] = 0.0
            if codes[lane] > 0:
                status[sentence] = INFINITE if codes[lane] == 1 else NAN
            elif best[lane] == -np.inf:
                status[sentence] = INFEASIBLE
            else:
                for m in range(lengths[sentence]):
                    z[sentence, heads[lane, m], m] = 1.0
