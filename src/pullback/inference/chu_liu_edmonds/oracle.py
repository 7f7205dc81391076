"""SparseMAP's oracle for all trees: the algorithm of Chu, Liu and Edmonds."""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import OK
from pullback.inference.chu_liu_edmonds import kernels
from pullback.inference.scratch import carve
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.trees_oracle import columns, is_tree


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


ORACLE = Oracle(best, work, columns, (lambda shape: shape[0] * shape[0], arrange), valid=valid)
