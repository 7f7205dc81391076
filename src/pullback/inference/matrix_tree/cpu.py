"""Non-projective expectations and samples on the CPU: compiled, sentences in SIMD lanes, groups of them over threads.

Sentences whose scores are too far apart for float64 weights have a kernel of their own, compiled when it is first needed
(logs.py). Samples for which the random walks take too long are drawn word after word, from marginals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks, random
from pullback.inference.matrix_tree import logs, wilson
from pullback.inference.matrix_tree.kernels import LANES, OUT_OF_RANGE, expectations, products
from pullback.inference.threads import spread
from pullback.inference.trees import draw

Array = np.ndarray
_NONE, _NO_MATRICES = np.empty(0), np.empty((0, 0, 0))


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_z = np.zeros(len(lengths))
    _Batch(scores, lengths, multiroot).expectations(validate, log_z=log_z)
    return torch.from_numpy(log_z)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    mu = np.zeros(scores.shape)
    _Batch(scores, lengths, multiroot).expectations(validate, mu=mu)
    return _like(scores, mu)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    nats = np.zeros(len(lengths))
    _Batch(scores, lengths, multiroot).expectations(validate, entropy=nats)
    return torch.from_numpy(nats)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    product = np.zeros(scores.shape)
    _Batch(scores, lengths, multiroot).products(validate, _double(direction), product)
    return _like(scores, product)


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """The derivative of the entropy in each score, -J s, from the scores' differences alone."""
    batch, slope = _Batch(scores, lengths, multiroot), np.zeros(scores.shape)
    batch.products(validate, batch.scores, slope, entropic=True)
    return _like(scores, slope)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = _Batch(scores, lengths, multiroot)
    roots = np.empty((0, 0))
    if not multiroot:
        mu = np.zeros(scores.shape)
        batch.expectations(validate, mu=mu)
        roots = np.ascontiguousarray(mu.diagonal(axis1=1, axis2=2))
    z = np.zeros(scores.shape)
    batch.sample(validate, seeds.contiguous().numpy(), roots, z)
    return _like(scores, z)


class _Batch:
    """A batch as the kernels take it: float64 scores, lengths, and a status for each sentence."""

    def __init__(self, scores: Tensor, lengths: Tensor, multiroot: bool) -> None:
        self.scores = _double(scores)
        self.lengths = lengths.contiguous().numpy()
        self.multiroot = multiroot
        self.status = np.zeros(len(lengths), np.int64)
        n = scores.shape[-1]
        self._beyond = (self.lengths < 0) | (self.lengths > n)
        if self._beyond.any():
            self.lengths = np.where(self._beyond, 0, self.lengths)

    def expectations(
        self, validate: bool, mu: Array = _NO_MATRICES, log_z: Array = _NONE, entropy: Array = _NONE
    ) -> None:
        """Write what is wanted."""
        self._in_lanes(expectations, 3 if mu.size or entropy.size else 1, self.multiroot, mu, log_z, entropy)
        self._in_logs(_NO_MATRICES, 1.0, mu, _NO_MATRICES, log_z, entropy)
        self._settle(validate, mu, log_z, entropy)

    def products(self, validate: bool, direction: Array, product: Array, entropic: bool = False) -> None:
        """Write the derivatives of the marginals along the direction; or, if it is the scores, the entropy's gradient."""
        self._in_lanes(products, 9, direction, self.multiroot, product)
        if entropic:
            np.negative(product, out=product)
        along = _NO_MATRICES if entropic else direction
        self._in_logs(along, float(entropic), _NO_MATRICES, product)
        self._settle(validate, product)

    def sample(self, validate: bool, seeds: Array, roots: Array, z: Array) -> None:
        """Write random trees; with a single root, the marginals of root arcs are given."""
        children, drawn, before = np.full(len(seeds), -1), np.zeros(len(seeds), np.int64), self.status.copy()
        trees = (children, seeds, drawn, z, self.status)
        steps = wilson.STEPS_PER_WORD
        spread(wilson.sample, len(seeds), 20.0 * z.size, self.scores, self.lengths, roots, steps, *trees)
        rest = np.flatnonzero(self.status == wilson.UNFINISHED)
        if len(rest):
            z[rest] = self._word_after_word(rest, children[rest], random.advanced(seeds[rest], drawn[rest]))
            self.status[rest] = np.where(np.isnan(z[rest]).any((1, 2)), checks.INFEASIBLE, checks.OK)
        self.status[before != checks.OK] = before[before != checks.OK]
        self._settle(validate, z)

    def _word_after_word(self, rest: Array, children: Array, seeds: Array) -> Array:
        """Random trees of some sentences; a single root's child is given, -1 if there may be several."""
        one = np.eye(self.scores.shape[-1], dtype=bool)
        allowed = (children < 0)[:, None, None] | (one == one[children][:, None, :])
        arcs = torch.from_numpy(np.where(allowed, self.scores[rest], -np.inf))
        lengths = torch.from_numpy(self.lengths[rest])
        return draw(lambda left: marginals(left, lengths, True, False), arcs, lengths, torch.from_numpy(seeds)).numpy()

    def _in_lanes(self, kernel: Callable[..., None], passes: int, *args: object) -> None:
        """A pass is a loop over the n^3 / 3 triples of words."""
        work = passes / 3 * float((self.lengths.astype(float) ** 3).sum()) / LANES
        order = np.argsort(-self.lengths, kind="stable")
        spread(kernel, -(-len(order) // LANES), work, self.scores, self.lengths, order, *args, self.status)

    def _in_logs(self, direction: Array, entropic: float, mu: Array, product: Array, *totals: Array) -> None:
        """The sentences that are left; `totals` are log-partitions and entropies to write, unless they are empty."""
        rest = np.flatnonzero(self.status == OUT_OF_RANGE)
        if len(rest):
            work, found = 10.0 * float((self.lengths[rest].astype(float) ** 3).sum()), np.empty((len(self.status), 2))
            options = direction, entropic, self.multiroot, mu, product, found
            spread(logs.solve, len(rest), work, rest, self.scores, self.lengths, *options, self.status)
            for column, total in enumerate(totals):
                if total.size > 0:
                    total[rest] = found[rest, column]

    def _settle(self, validate: bool, *results: Array) -> None:
        """Raise for the first sentence with trouble, if asked; otherwise its results are NaN."""
        self.status[self._beyond] = checks.BAD_SIZE
        if not self.status.any():
            return
        if validate:
            checks.raise_for(self.status)
        for result in results:
            if result.size > 0:
                result[self.status != checks.OK] = np.nan


def _double(x: Tensor) -> Array:
    """By NumPy, on this thread: PyTorch would wake others for it."""
    return np.ascontiguousarray(x.detach().numpy(), np.float64)


def _like(scores: Tensor, result: Array) -> Tensor:
    return torch.from_numpy(result.astype(scores.detach().numpy().dtype, copy=False))
