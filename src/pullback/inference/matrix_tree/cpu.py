"""Non-projective expectations on the CPU: compiled, eight sentences in SIMD lanes, groups of them over threads.

The lanes hold float64 weights. A sentence whose scores are too far apart for that is done alone, in logs.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.matrix_tree.kernels import LANES, expectations, products
from pullback.inference.threads import spread

_UNWANTED, _UNWANTED_MATRICES = np.empty(0), np.empty((0, 0, 0))


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    log_z = np.zeros(len(lengths))
    spread(expectations, *batch.cost(1), *batch.arrays, multiroot, _UNWANTED_MATRICES, log_z, _UNWANTED, batch.status)
    batch.check(validate)
    return torch.from_numpy(log_z)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    mu = np.zeros(scores.shape)
    spread(expectations, *batch.cost(3), *batch.arrays, multiroot, mu, _UNWANTED, _UNWANTED, batch.status)
    batch.check(validate)
    return torch.from_numpy(mu).to(scores.dtype)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    h = np.zeros(len(lengths))
    spread(expectations, *batch.cost(3), *batch.arrays, multiroot, _UNWANTED_MATRICES, _UNWANTED, h, batch.status)
    batch.check(validate)
    return torch.from_numpy(h)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    v = direction.detach().double().contiguous().numpy()
    product = np.zeros(scores.shape)
    spread(products, *batch.cost(9), *batch.arrays, v, multiroot, product, batch.status)
    batch.check(validate)
    return torch.from_numpy(product).to(scores.dtype)


class _Batch:
    """A batch as the kernels take it: float64 scores, lengths, and the sentences in order of falling length."""

    def __init__(self, scores: Tensor, lengths: Tensor) -> None:
        self.lengths, self.n = lengths, scores.shape[-1]
        checks.raise_for(((lengths < 0) | (lengths > self.n)) * checks.BAD_LENGTH, lengths, self.n)
        counts = lengths.contiguous().numpy()
        self.arrays = (
            scores.detach().double().contiguous().numpy(),
            counts,
            np.argsort(-counts, kind="stable"),
        )
        self.status = np.zeros(len(counts), np.int64)

    def cost(self, passes: float) -> tuple[int, float]:
        """Groups of lanes, and about how many operations `passes` passes over n^3 / 3 triples are."""
        cubes = (self.arrays[1].astype(float) ** 3).sum()
        return -(-len(self.status) // LANES), passes / 3 * float(cubes) / LANES

    def check(self, validate: bool) -> None:
        if validate and self.status.any():
            checks.raise_for(torch.from_numpy(self.status), self.lengths, self.n)
