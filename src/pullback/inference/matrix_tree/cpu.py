"""Non-projective expectations and samples on the CPU: compiled, sentences in SIMD lanes, groups of them over threads.

Sentences whose scores are too far apart for float64 weights get numbers with exponents, for which the kernel is compiled when
it is first needed. Samples for which the random walks take too long are drawn word after word, from marginals.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.engine.rules.batch import OUT_OF_RANGE, Batch
from pullback.inference.front import checks, random
from pullback.inference.matrix_tree import wilson
from pullback.inference.matrix_tree.elimination import LANES
from pullback.inference.matrix_tree.kernels import solve
from pullback.inference.trees.family import draw

Array = np.ndarray
Kind = tuple[int, ...]
_NONE = np.empty((0, 0, 0))
_PLAIN, _DUAL = (0,), (0, 0)
_EXPONENTS: tuple[Kind, ...] = (), (0,), (0, 0, 0)  # none, or their parts


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    return _solved(_PLAIN, False, scores, lengths, multiroot, validate)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    return _solved(_PLAIN, True, scores, lengths, multiroot, validate)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    return _solved(_DUAL, False, scores, lengths, multiroot, validate)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    return _solved(_DUAL, True, scores, lengths, multiroot, validate, _double(direction))


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """The derivative of the entropy in each score, -J s, from the scores' differences alone."""
    return _solved(_DUAL, True, scores, lengths, multiroot, validate).neg_()


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, roots = _Batch(scores, lengths, multiroot), np.empty((0, 0))
    if not multiroot:
        mu, _ = batch.solve(_PLAIN, True)
        mu = batch.settle((torch.from_numpy(mu),), validate)[0].numpy()
        roots = np.ascontiguousarray(mu.diagonal(axis1=1, axis2=2))
    z = np.zeros(scores.shape)
    batch.sample(seeds.contiguous().numpy(), roots, z)
    return batch.settle((_like(scores, z),), validate)[0]


def _solved(
    kind: Kind, arcs: bool, scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool, direction: Array = _NONE
) -> Tensor:
    """The results of `kernels.solve` for arcs, or for sentences."""
    batch = _Batch(scores, lengths, multiroot)
    out, value = batch.solve(kind, arcs, direction)
    return batch.settle((_like(scores, out) if arcs else torch.from_numpy(value),), validate)[0]


class _Batch(Batch):
    """A batch in float64; its methods find what is wanted, and write the status of each sentence."""

    def __init__(self, scores: Tensor, lengths: Tensor, multiroot: bool) -> None:
        super().__init__(torch.from_numpy(_double(scores)), lengths)
        self.multiroot = multiroot

    def solve(self, kind: Kind, arcs: bool, direction: Array = _NONE) -> tuple[Array, Array]:
        """The results of `kernels.solve` for arcs, if wanted, and for sentences: by weights, and for those that are left by
        numbers with exponents. A sweep is a loop over the n^3 / 3 triples of words.
        """
        (scores, lengths, order), status = self.arrays, self.status
        out, value = np.zeros(scores.shape) if arcs else _NONE, np.zeros(len(lengths))
        sweeps = len(kind) ** 2 * (3 if arcs else 1) * self.cubes / 3
        work = sweeps / LANES
        for exponents in _EXPONENTS:
            options = kind, exponents, direction, self.multiroot, out, value
            spread(solve, -(-len(order) // LANES), work, scores, lengths, order, *options, status)
            if not (status == OUT_OF_RANGE).any():
                break
            order = order[status[order] == OUT_OF_RANGE]
            work = sweeps * len(order) / len(lengths)
        return out, value

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


def _double(x: Tensor) -> Array:
    """By NumPy, on this thread: PyTorch would wake others for it."""
    return np.ascontiguousarray(x.detach().numpy(), np.float64)


def _like(scores: Tensor, result: Array) -> Tensor:
    return torch.from_numpy(result.astype(scores.detach().numpy().dtype, copy=False))
