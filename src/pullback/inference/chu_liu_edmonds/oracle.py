"""SparseMAP's oracle for all trees: the algorithm of Chu, Liu and Edmonds."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.scratch import carve
from pullback.inference.chu_liu_edmonds import kernels
from pullback.inference.front.checks import OK
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    n, length = shape[0], sizes[0]
    scratch, at = kernels.workspace(work, n)
    heads, at = carve(work, at, n, np.int16)
    if kernels.best_heads(scores.reshape(n, n), length, options[1] != 0, scratch, heads) != OK:
        return -1
    for m in range(length):
        parts[m] = heads[m] * n + m
    return length


def work(shape):
    return kernels.bytes_for(shape[0])


def arrange(shape, sizes, options, places):
    n, length = shape[0], sizes[0]
    places[:] = -1
    for h in range(length):
        for m in range(length):
            places[h * n + m] = h * n + m
    return len(places)


def valid(shape, sizes, options, parts, count):
    return is_tree(shape[0], sizes[0], options[1] != 0, parts, count)


def columns(shape: tuple[int, ...]) -> np.ndarray:
    """The group of each arc: every word has one head."""
    return np.tile(np.arange(shape[1], dtype=np.int32), shape[0])


def stars(shape, sizes, options, turn, parts):
    """A word at the root, which all others depend on: over all words, every arc has the same weight."""
    n, length = shape[0], sizes[0]
    for m in range(length):
        parts[m] = turn * n + m
    return length if turn < length else -1


@subroutine
def is_tree(n, length, multiroot, parts, count):
    """Whether parts are the arcs of a tree: entry m being that of word m, head * n + m."""
    if count != length:
        return False
    roots = 0
    for m in range(length):
        if parts[m] % n != m or parts[m] // n >= length:
            return False
        roots += parts[m] // n == m
    if roots > 1 and not multiroot:
        return False
    for m in range(length):
        above, steps = m, 0
        while parts[above] // n != above:
            above = parts[above] // n
            steps += 1
            if steps > length:
                return False
    return True


ORACLE = Oracle(best, work, columns, (lambda shape: shape[0] * shape[0], arrange), valid=valid, centre=stars)
