"""The linear algebra of the active set, compiled: the inverse of its Gram matrix, kept up to date. See README.md.

M stands for the inverse. A structure that comes or goes changes it by a multiple of a vector's square, and what a change
costs is the way of M through memory. So the last few changes wait, as vectors, until they are added all at once:

    M = base + sum over waiting changes c of factor_c change_c change_c^T

and as M is symmetric only its lower triangle is kept.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pullback.inference.compile import INNER, lean
from pullback.inference.records import Record, Shapes

DEPENDENT = 1e-4  # squared distances to the span of the others: rounding is about 1e-6 at most, others at least 0.01
ALL = np.int64(-1)  # of the slopes, for `direction`; an integer of Python would be a type of its own, compiled again
WAITING = 4  # changes at most; `_merge` is written for as many

Inverse = Record(
    "Inverse",
    base=(np.float64, 1),  # [capacity (capacity + 1) / 2]: the rows of the lower triangle, one after the other
    changes=(np.float64, 2),  # [WAITING, capacity]
    factors=(np.float64, 1),  # [WAITING]
    waiting=(np.int64, 1),  # [1]: how many changes wait
    sums=(np.float64, 1),  # [capacity]: M 1, the sum of each row of M
)

_njit: Any = numba.njit  # its types do not know all options
# For loops that may sum in any order, which vectors need.
reordered = _njit(
    error_model="numpy", boundscheck=False, _nrt=False, fastmath={"reassoc", "nsz", "contract"}, **INNER,
)  # fmt: skip


def inverse_shapes(capacity: int, inside: str = "") -> Shapes:
    """The arrays of an inverse for so many structures."""
    triangle = capacity * (capacity + 1) // 2
    shapes = {"base": (triangle,), "changes": (WAITING, capacity), "factors": (WAITING,), "waiting": (1,), "sums": (capacity,)}
    return {inside + name: shape for name, shape in shapes.items()}


@lean
def _row(i):
    """Where a row of the triangle begins."""
    return i * (i + 1) // 2


@reordered
def append(inverse, size, gram, square, work):
    """Extend M by a structure z, in O(size^2), with room for it; if the size is 0, M is begun anew.

    `gram` are <a_i, z> + 1 for each active structure, `square` is <z, z> + 1. Returns whether z is affinely independent of
    the active set; if not, nothing has changed.
    """
    if size == 0:
        inverse.waiting[0] = 0
    multiply(inverse, size, gram, work)
    distance, rest = square, -1.0
    for j in range(size):
        distance -= gram[j] * work[j]
        rest += work[j]
    if not distance > DEPENDENT:
        return False
    scale = 1.0 / distance
    work[size], inverse.sums[size] = -1.0, 0.0
    row = _row(size)
    for j in range(size + 1):
        inverse.base[row + j] = 0.0
        inverse.sums[j] += scale * rest * work[j]
    for c in range(inverse.waiting[0]):
        inverse.changes[c, size] = 0.0
    _change(inverse, size + 1, scale, work)
    return True


@reordered
def remove(inverse, size, index, work):
    """Take a structure out of M, in O(size^2); the last one takes its place."""
    column(inverse, size, index, work)
    scale, last = 1.0 / work[index], size - 1
    share = scale * inverse.sums[index]
    for j in range(size):
        inverse.sums[j] -= share * work[j]
    _change(inverse, size, -scale, work)
    base, row, last_row = inverse.base, _row(index), _row(last)
    for j in range(index):
        base[row + j] = base[last_row + j]
    for j in range(index + 1, last):
        base[_row(j) + index] = base[last_row + j]
    base[row + index] = base[last_row + last]
    for c in range(inverse.waiting[0]):
        inverse.changes[c, index] = inverse.changes[c, last]
    inverse.sums[index] = inverse.sums[last]


@reordered
def direction(inverse, size, slopes, only, step):
    """The step of the weights to the minimum on the affine hull: M (e - tau 1), tau such that it sums to zero.

    `slopes` are e_i = <s - mu, a_i>, up to a constant. `only` is the structure whose slope alone is not zero, or `ALL`
    (-1).
    """
    if only >= 0:
        column(inverse, size, only, step)
        for j in range(size):
            step[j] *= slopes[only]
    else:
        multiply(inverse, size, slopes, step)
    total, norm = 0.0, 0.0
    for j in range(size):
        total += step[j]
        norm += inverse.sums[j]
    tau = total / norm
    for j in range(size):
        step[j] -= tau * inverse.sums[j]


@reordered
def multiply(inverse, size, vector, out):
    """M times a vector; each entry of the triangle counts twice. Where many changes wait, it adds them to the base."""
    base, changes = inverse.base, inverse.changes
    full = inverse.waiting[0] == WAITING
    for i in range(size):
        if full:
            _merge(inverse, i)
        total, share, row = 0.0, vector[i], _row(i)
        for j in range(i):
            entry = base[row + j]
            total += entry * vector[j]
            out[j] += entry * share
        out[i] = total + base[row + i] * share
    if full:
        inverse.waiting[0] = 0
    for c in range(inverse.waiting[0]):
        share = 0.0
        for j in range(size):
            share += changes[c, j] * vector[j]
        share *= inverse.factors[c]
        for j in range(size):
            out[j] += share * changes[c, j]


@reordered
def column(inverse, size, index, out):
    """A column of M."""
    row = _row(index)
    for j in range(index + 1):
        out[j] = inverse.base[row + j]
    for j in range(index + 1, size):
        out[j] = inverse.base[_row(j) + index]
    for c in range(inverse.waiting[0]):
        share = inverse.factors[c] * inverse.changes[c, index]
        for j in range(size):
            out[j] += share * inverse.changes[c, j]


@reordered
def _change(inverse, size, factor, change):
    """Add a multiple of a vector's square to M, later."""
    if inverse.waiting[0] == WAITING:
        for i in range(size):
            _merge(inverse, i)
        inverse.waiting[0] = 0
    c = inverse.waiting[0]
    inverse.waiting[0] += 1
    inverse.factors[c] = factor
    for j in range(size):
        inverse.changes[c, j] = change[j]


@reordered
def _merge(inverse, i):
    """Add all waiting changes to a row of the base."""
    base, changes, row = inverse.base, inverse.changes, _row(i)
    a, b = inverse.factors[0] * changes[0, i], inverse.factors[1] * changes[1, i]
    c, d = inverse.factors[2] * changes[2, i], inverse.factors[3] * changes[3, i]
    for j in range(i + 1):
        base[row + j] += a * changes[0, j] + b * changes[1, j] + c * changes[2, j] + d * changes[3, j]


@lean
def move(weights, size, step):
    """Take the step, or as much of it as there is before a weight vanishes.

    Returns:
        Which part of it was taken, and whose weight vanishes: -1 if all of it was.
    """
    vanishing = 0
    for i in range(size):
        vanishing += weights[i] + step[i] <= 0.0
    far, blocking = 1.0, -1
    if vanishing > 0:
        for i in range(size):
            if weights[i] + far * step[i] <= 0.0 and step[i] < 0.0:
                far, blocking = weights[i] / -step[i], i
    for i in range(size):
        weights[i] += far * step[i]
    return far, blocking


@reordered
def normalize(weights, size):
    """Divide the weights by their sum."""
    total = 0.0
    for i in range(size):
        total += weights[i]
    scale = 1.0 / total
    for i in range(size):
        weights[i] *= scale
