"""Non-projective expectations on the CPU: compiled, eight sentences in SIMD lanes, groups of them over threads.

The lanes hold float64 weights. A sentence whose scores are too far apart for that is done alone, in logs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.matrix_tree import sampling
from pullback.inference.matrix_tree.kernels import LANES, expectations, products
from pullback.inference.threads import spread

_STEPS_PER_WORD = 100  # of Wilson's walks: many times what ordinary scores need
_UNWANTED, _UNWANTED_MATRICES = np.empty(0), np.empty((0, 0, 0))


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    log_z = np.zeros(len(lengths))
    batch.spread(expectations, 1, multiroot, _UNWANTED_MATRICES, log_z, _UNWANTED)
    batch.check(validate)
    return torch.from_numpy(log_z)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    mu = np.zeros(scores.shape)
    batch.spread(expectations, 3, multiroot, mu, _UNWANTED, _UNWANTED)
    batch.check(validate)
    return torch.from_numpy(mu).to(scores.dtype)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    h = np.zeros(len(lengths))
    batch.spread(expectations, 3, multiroot, _UNWANTED_MATRICES, _UNWANTED, h)
    batch.check(validate)
    return torch.from_numpy(h)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    v = direction.detach().double().contiguous().numpy()
    product = np.zeros(scores.shape)
    batch.spread(products, 9, v, multiroot, product)
    batch.check(validate)
    return torch.from_numpy(product).to(scores.dtype)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths)
    roots = np.empty((0, 0))
    if not multiroot:
        mu = marginals(scores.double(), lengths, multiroot, validate)
        roots = mu.diagonal(dim1=1, dim2=2).contiguous().numpy()
    z = np.zeros(scores.shape)
    work = 20.0 * scores.numel()
    arrays = (batch.scores, batch.counts, seeds.contiguous().numpy(), roots)
    spread(sampling.sample, len(lengths), work, *arrays, _STEPS_PER_WORD, z, batch.status)
    batch.check(validate)
    return torch.from_numpy(z).to(scores.dtype)


class _Batch:
    """A batch as the kernels take it: float64 scores, lengths, and the sentences in order of falling length."""

    def __init__(self, scores: Tensor, lengths: Tensor) -> None:
        self.lengths, self.n = lengths, scores.shape[-1]
        self.scores = scores.detach().double().contiguous().numpy()
        self.counts = lengths.contiguous().numpy()
        self.status = np.zeros(len(lengths), np.int64)
        if len(lengths) and (self.counts.min() < 0 or self.counts.max() > self.n):
            self.status[(self.counts < 0) | (self.counts > self.n)] = checks.BAD_LENGTH
            self.check(True)

    def spread(self, kernel: Callable[..., None], passes: int, *args: object) -> None:
        """Run a kernel over groups of lanes; a pass is a loop over the n^3 / 3 triples of words."""
        work = passes / 3 * float((self.counts.astype(float) ** 3).sum()) / LANES
        order = np.argsort(-self.counts, kind="stable")
        groups = -(-len(order) // LANES)
        spread(kernel, groups, work, self.scores, self.counts, order, *args, self.status)

    def check(self, validate: bool) -> None:
        if validate and self.status.any():
            checks.raise_for(torch.from_numpy(self.status), self.lengths, self.n)
