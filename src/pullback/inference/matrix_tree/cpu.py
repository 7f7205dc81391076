"""Non-projective expectations and samples on the CPU: compiled, sentences in SIMD lanes, groups of them over threads.

Sentences whose scores are too far apart for float64 weights have a kernel of their own, compiled when it is first needed
(far.py). Samples for which the random walks take too long are drawn word after word, from marginals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.engine.rules.batch import OUT_OF_RANGE, Batch
from pullback.inference.front import checks, random
from pullback.inference.matrix_tree import far, wilson
from pullback.inference.matrix_tree.kernels import LANES, expectations, products
from pullback.inference.trees.family import draw

Array = np.ndarray
_NONE, _NO_MATRICES = np.empty(0), np.empty((0, 0, 0))
_ONE_PART, _THREE_PARTS = (0,), (0, 0, 0)  # of an exponent


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, log_z = _Batch(scores, lengths, multiroot), np.zeros(len(lengths))
    batch.expectations(log_z=log_z)
    return batch.settle((torch.from_numpy(log_z),), validate)[0]


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, mu = _Batch(scores, lengths, multiroot), np.zeros(scores.shape)
    batch.expectations(mu=mu)
    return batch.settle((_like(scores, mu),), validate)[0]


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, nats = _Batch(scores, lengths, multiroot), np.zeros(len(lengths))
    batch.expectations(entropy=nats)
    return batch.settle((torch.from_numpy(nats),), validate)[0]


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, product = _Batch(scores, lengths, multiroot), np.zeros(scores.shape)
    batch.products(_double(direction), product)
    return batch.settle((_like(scores, product),), validate)[0]


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """The derivative of the entropy in each score, -J s, from the scores' differences alone."""
    batch, gradient = _Batch(scores, lengths, multiroot), np.zeros(scores.shape)
    batch.products(batch.arrays[0], gradient, entropic=True)
    return batch.settle((_like(scores, gradient),), validate)[0]


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, roots = _Batch(scores, lengths, multiroot), np.empty((0, 0))
    if not multiroot:
        mu = np.zeros(scores.shape)
        batch.expectations(mu=mu)
        mu = batch.settle((torch.from_numpy(mu),), validate)[0].numpy()
        roots = np.ascontiguousarray(mu.diagonal(axis1=1, axis2=2))
    z = np.zeros(scores.shape)
    batch.sample(seeds.contiguous().numpy(), roots, z)
    return batch.settle((_like(scores, z),), validate)[0]


class _Batch(Batch):
    """A batch in float64; its methods write what is wanted, and the status of each sentence."""

    def __init__(self, scores: Tensor, lengths: Tensor, multiroot: bool) -> None:
        super().__init__(torch.from_numpy(_double(scores)), lengths)
        self.multiroot = multiroot

    def expectations(self, mu: Array = _NO_MATRICES, log_z: Array = _NONE, entropy: Array = _NONE) -> None:
        self._in_lanes(expectations, 3 if mu.size or entropy.size else 1, self.multiroot, mu, log_z, entropy)
        self._far(_NO_MATRICES, entropy.size > 0, mu, _NO_MATRICES, log_z, entropy)

    def products(self, direction: Array, product: Array, entropic: bool = False) -> None:
        """The derivatives of the marginals along the direction; or, if it is the scores, the entropy's gradient."""
        self._in_lanes(products, 9, direction, self.multiroot, product)
        if entropic:
            np.negative(product, out=product)
        self._far(_NO_MATRICES if entropic else direction, entropic, _NO_MATRICES, product)

    def sample(self, seeds: Array, roots: Array, z: Array) -> None:
        """Random trees; with a single root, the marginals of root arcs are given."""
        scores, lengths, _ = self.arrays
        children, drawn, before = np.full(len(seeds), -1), np.zeros(len(seeds), np.int64), self.status.copy()
        trees = (children, seeds, drawn, z, self.status)
        spread(wilson.sample, len(seeds), 20.0 * z.size, scores, lengths, roots, wilson.STEPS_PER_WORD, *trees)
        rest = np.flatnonzero(self.status == wilson.UNFINISHED)
        if len(rest):
            z[rest] = self._word_after_word(rest, children[rest], random.advanced(seeds[rest], drawn[rest]))
            self.status[rest] = np.where(np.isnan(z[rest]).any((1, 2)), checks.INFEASIBLE, checks.OK)
        self.status[before != checks.OK] = before[before != checks.OK]

    def _word_after_word(self, rest: Array, children: Array, seeds: Array) -> Array:
        """Random trees of some sentences; a single root's child is given, -1 if there may be several."""
        scores, lengths, _ = self.arrays
        one = np.eye(scores.shape[-1], dtype=bool)
        allowed = (children < 0)[:, None, None] | (one == one[children][:, None, :])
        arcs, length = torch.from_numpy(np.where(allowed, scores[rest], -np.inf)), torch.from_numpy(lengths[rest])
        return draw(lambda left: marginals(left, length, True, False), arcs, length, torch.from_numpy(seeds)).numpy()

    def _in_lanes(self, kernel: Callable[..., None], passes: int, *args: object) -> None:
        """A pass is a loop over the n^3 / 3 triples of words."""
        work = passes / 3 * self.cubes / LANES
        spread(kernel, -(-len(self.order) // LANES), work, *self.arrays, *args, self.status)

    def _far(self, direction: Array, entropic: bool, mu: Array, product: Array, *totals: Array) -> None:
        """The sentences that are left; `totals` are log-partitions and entropies to write, unless they are empty."""
        if not (rest := self.status == OUT_OF_RANGE).any():
            return
        (scores, lengths, _), found = self.arrays, np.empty((len(rest), 2))
        for exponents in (_ONE_PART, _THREE_PARTS):
            order = self.order[self.status[self.order] == OUT_OF_RANGE]
            if len(order):
                work = float((lengths[order].astype(float) ** 3).sum())
                options = exponents, direction, entropic, self.multiroot, mu, product, found
                spread(far.solve, -(-len(order) // LANES), work, scores, lengths, order, *options, self.status)
        for column, total in enumerate(totals):
            if total.size > 0:
                total[rest] = found[rest, column]


def _double(x: Tensor) -> Array:
    """By NumPy, on this thread: PyTorch would wake others for it."""
    return np.ascontiguousarray(x.detach().numpy(), np.float64)


def _like(scores: Tensor, result: Array) -> Tensor:
    return torch.from_numpy(result.astype(scores.detach().numpy().dtype, copy=False))
