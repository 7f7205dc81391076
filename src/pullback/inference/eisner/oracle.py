"""SparseMAP's oracle for projective trees: Eisner's algorithm, in float32 until that finds nothing new."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import subroutine
from pullback.inference._numba.scratch import carve
from pullback.inference.chu_liu_edmonds.oracle import columns, is_tree, stars
from pullback.inference.eisner import spans
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    n, length, multiroot = shape[0], sizes[0], options[1] != 0
    scratch, at = spans.workspace(work, n, scores.dtype)
    heads, at = carve(work, at, n, np.int16)
    if not spans.best_heads(scores, length, multiroot, scratch, heads):
        return -1
    for m in range(length):
        parts[m] = heads[m] * n + m
    return length


def work(shape):
    return 8 * spans.numbers_for(shape[0])


def arrange(shape, sizes, options, places):
    n, length = shape[0], sizes[0]
    places[:] = -1
    for h in range(length):
        for m in range(length):
            places[h * n + m] = spans.place_of(h, m, length)
    return len(places)


def valid(shape, sizes, options, parts, count):
    return is_tree(shape[0], sizes[0], options[1] != 0, parts, count) and not _crosses(shape[0], parts, count)


@subroutine
def _crosses(n, parts, length):
    """Whether two arcs cross; the root stands left of the first word."""
    for m in range(length):
        low, high = _ends(parts[m] // n, m)
        for k in range(low + 1, high):
            other_low, other_high = _ends(parts[k] // n, k)
            if other_low < low or other_high > high:
                return True
    return False


@subroutine
def _ends(head, word):
    return (-1 if head == word else min(head, word)), max(head, word)


def _chart(shape):
    """How many numbers a chart has."""
    return (shape[0] + 1) * spans.pitch_of.py_func(shape[0])


ORACLE = Oracle(best, work, columns, (lambda shape: 2 * _chart(shape), arrange), rough=True, valid=valid, centre=stars)
