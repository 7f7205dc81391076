"""SparseMAP of all trees: the algorithm of Chu, Liu and Edmonds is the oracle."""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import OK
from pullback.inference.chu_liu_edmonds import kernels
from pullback.inference.compile import inner, kernel, lean
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.sentences import solving


@inner
def _places(n):
    return n * n


@lean
def _place_of(head, word, length):
    return head * length + word


@inner
def _workspace(n, like):
    return kernels.workspace(n)


@inner
def _best_heads(scores, length, multiroot, work, heads):
    square = scores[: length * length].reshape(length, length)
    return kernels.best_heads(square, length, multiroot, work, heads) == OK


_solve = solving(Oracle("nonprojective", False, _places, _place_of, _workspace, _best_heads, np.float64))


@kernel
def solve(worker, workers, taken, scores, lengths, order, multiroot, limit, starts, completing, result, status):
    """Solve sentences until none is left; sentences.py has the arguments."""
    _solve(taken, scores, lengths, order, multiroot, limit, starts, completing, result, status)
