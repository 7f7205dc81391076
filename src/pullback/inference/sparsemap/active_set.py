"""The linear algebra of the active set, compiled: the inverse of its Gram matrix, kept up to date. See README.md.

M stands for the inverse. A structure that comes or goes changes it by a multiple of a vector's square, and what a change
costs is the way of M through memory. So the last few changes wait, as vectors, until they are added all at once:

    M = base + sum over waiting changes c of factor_c change_c change_c^T

and as M is symmetric only its lower triangle is kept, in blocks of 4 rows and 8 columns, one row of blocks after the other, so
that a product with M reads memory in order and in whole vectors. The squares of two blocks on the diagonal are full. What is
behind the last structure in them may be any finite number.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pullback.inference.compile import INNER, lean
from pullback.inference.lanes import fma, load, splat, store
from pullback.inference.records import Record, Shapes
from pullback.inference.rows import store_sums, sum_of

DEPENDENT = 1e-4  # squared distances to the span of the others: rounding is about 1e-6 at most, others at least 0.01
ALL = np.int64(-1)  # of the slopes, for `direction`; an integer of Python would be a type of its own, compiled again
WAITING = 4  # changes at most; `_merge` is written for as many
LANES = 8  # in a vector of float64

Inverse = Record(
    "Inverse",
    base=(np.float64, 1),  # the blocks, one after the other
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


def padded(capacity: int) -> int:
    """Room for so many structures in whole vectors, as all vectors have that `append` and `direction` get."""
    return -(-capacity // LANES) * LANES


def inverse_shapes(capacity: int, inside: str = "") -> Shapes:
    """The arrays of an inverse for so many structures."""
    room = padded(capacity)
    shapes = {"base": (entries(room),), "changes": (WAITING, room), "factors": (WAITING,), "waiting": (1,), "sums": (room,)}
    return {inside + name: shape for name, shape in shapes.items()}


def entries(room: int) -> int:
    """How many there are in the blocks of so many rows, a multiple of 8."""
    return room * (room + LANES) // 2


@lean
def _at(i, j):
    """Where the entry of a row and a column is, if there is one."""
    first = i & -LANES
    return first * (first + LANES) // 2 + (i & 4) * (first + LANES) + (j & -LANES) * 4 + (i & 3) * LANES + (j & 7)


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
    for j in range(size + 1):
        inverse.sums[j] += scale * rest * work[j]
    _clear(inverse, size)
    _change(inverse, size + 1, scale, work)
    return True


@reordered
def _clear(inverse, i):
    """Write zeros to the next row; to all rows that share a square with it, if it is the first of them."""
    base, first = inverse.base, i & -LANES
    for row in range(i, first + LANES if i == first else i + 1):
        for j in range(0, first + LANES, LANES):
            store(base, _at(row, j), splat(base, 0.0))
    for j in range(first, i):
        base[_at(j, i)] = 0.0
    for c in range(inverse.waiting[0]):
        for j in range(i, first + LANES):
            inverse.changes[c, j] = 0.0


@reordered
def remove(inverse, size, index, work):
    """Take a structure out of M, in O(size^2); the last one takes its place."""
    column(inverse, size, index, work)
    scale, last = 1.0 / work[index], size - 1
    share = scale * inverse.sums[index]
    for j in range(size):
        inverse.sums[j] -= share * work[j]
    _change(inverse, size, -scale, work)
    base, first = inverse.base, index & -LANES
    for j in range(first, last):
        base[_at(j, index)] = base[_at(last, j)]
    for j in range(min(first + LANES, last)):
        base[_at(index, j)] = base[_at(last, j)]
    base[_at(index, index)] = base[_at(last, last)]
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
    """M times a vector, which gets zeros behind its last entry. Where many changes wait, it adds them to the base."""
    base, changes, end = inverse.base, inverse.changes, -(-size // LANES) * LANES
    waiting = inverse.waiting[0]
    for j in range(size, end):
        vector[j] = 0.0
    for first in range(0, end, LANES):
        for i in range(first, first + LANES, 4):
            _multiply_left(base, i, vector, out)
        total = load(out, first)
        for i in range(first, first + LANES):
            total = fma(load(base, _at(i, first)), splat(base, vector[i]), total)
        store(out, first, total)
        if waiting == WAITING:
            _merge(inverse, first)
            _merge(inverse, first + 4)
    for c in range(waiting):
        total, at = splat(base, 0.0), c * changes.shape[1]
        for j in range(0, end, LANES):
            total = fma(load(changes, at + j), load(vector, j), total)
        share = splat(base, sum_of(total) * inverse.factors[c])
        for j in range(0, end, LANES):
            store(out, j, fma(load(changes, at + j), share, load(out, j)))
    if waiting == WAITING:
        inverse.waiting[0] = 0


@lean
def _multiply_left(base, i, vector, out):
    """What four rows contribute to a product left of the diagonal's squares: entries count twice, for their row and column."""
    at = _at(i, 0)
    a, b, c, d = (
        splat(base, vector[i]), splat(base, vector[i + 1]), splat(base, vector[i + 2]), splat(base, vector[i + 3]),
    )  # fmt: skip
    of_a = of_b = of_c = of_d = splat(base, 0.0)
    for j in range(0, i & -LANES, LANES):
        x, total = load(vector, j), load(out, j)
        entry = load(base, at)
        of_a, total = fma(entry, x, of_a), fma(entry, a, total)
        entry = load(base, at + 8)
        of_b, total = fma(entry, x, of_b), fma(entry, b, total)
        entry = load(base, at + 16)
        of_c, total = fma(entry, x, of_c), fma(entry, c, total)
        entry = load(base, at + 24)
        of_d, total = fma(entry, x, of_d), fma(entry, d, total)
        store(out, j, total)
        at += 32
    store_sums(out, i, of_a, of_b, of_c, of_d)


@reordered
def column(inverse, size, index, out):
    """A column of M."""
    base, end = inverse.base, (index & -LANES) + LANES
    for j in range(0, end, LANES):
        store(out, j, load(base, _at(index, j)))
    for j in range(end, size):
        out[j] = base[_at(j, index)]
    for c in range(inverse.waiting[0]):
        share = inverse.factors[c] * inverse.changes[c, index]
        for j in range(size):
            out[j] += share * inverse.changes[c, j]


@reordered
def _change(inverse, size, factor, change):
    """Add a multiple of a vector's square to M, later."""
    if inverse.waiting[0] == WAITING:
        for i in range(0, -(-size // LANES) * LANES, 4):
            _merge(inverse, i)
        inverse.waiting[0] = 0
    c = inverse.waiting[0]
    inverse.waiting[0] += 1
    inverse.factors[c] = factor
    for j in range(size):
        inverse.changes[c, j] = change[j]
    for j in range(size, -(-size // LANES) * LANES):
        inverse.changes[c, j] = 0.0


@reordered
def _merge(inverse, i):
    """Add all waiting changes to four rows of the base."""
    base, changes, factors = inverse.base, inverse.changes, inverse.factors
    room = changes.shape[1]
    for row in range(i, i + 4):
        a, b = splat(base, factors[0] * changes[0, row]), splat(base, factors[1] * changes[1, row])
        c, d = splat(base, factors[2] * changes[2, row]), splat(base, factors[3] * changes[3, row])
        at = _at(row, 0)
        for j in range(0, (i & -LANES) + LANES, LANES):
            entry = fma(load(changes, j), a, load(base, at))
            entry = fma(load(changes, room + j), b, entry)
            entry = fma(load(changes, 2 * room + j), c, entry)
            store(base, at, fma(load(changes, 3 * room + j), d, entry))
            at += 32


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
