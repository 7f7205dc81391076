"""The linear algebra of the active set, compiled: the inverse of its Gram matrix, kept up to date. See README.md.

The inverse is M = R^T R. Row i of R belongs to the i-th structure, and has no entries behind the i-th, so a new structure
adds one row and leaves the others as they are. A product with M reads each row once, as the cost of an iteration is the
memory traffic of R: 300 KB for 270 structures. Only the lower triangle is kept, in blocks of 4 rows and 8
columns, one row of blocks after the other, so that memory is read in order and in whole vectors. What is behind the diagonal
in them is zero.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import register_jitable

from pullback.inference._numba.compile import INNER, subroutine
from pullback.inference._numba.lanes import fma, load, splat, store
from pullback.inference._numba.records import Record, Shapes
from pullback.inference._numba.rows import keep_first, shift_down, sum_of

DEPENDENT = 1e-4  # squared distances to the span of the others: rounding is about 1e-6 at most, others at least 0.01
LANES = 8  # in a vector of float64

Inverse = Record(
    "Inverse",
    base=(np.float64, 1),  # the blocks of R, one after the other
    sums=(np.float64, 1),  # [capacity]: M 1, the sum of each row of M
)

_njit: Any = numba.njit  # its types do not know all options
# For loops that may sum in any order, which vectors need.
reordered = _njit(
    error_model="numpy", boundscheck=False, _nrt=False, fastmath={"reassoc", "nsz", "contract"}, **INNER,
)  # fmt: skip


@register_jitable
def padded(capacity: int) -> int:
    """Room for `capacity` structures in whole vectors, as all vectors have that `append` and `direction` get."""
    return -(-capacity // LANES) * LANES


def inverse_shapes(capacity: int, inside: str = "") -> Shapes:
    """The arrays of an inverse for `capacity` structures."""
    room = padded(capacity)
    shapes = {"base": (entries(room),), "sums": (room,)}
    return {inside + name: shape for name, shape in shapes.items()}


@register_jitable
def entries(room: int) -> int:
    """The number of entries in the blocks of `room` rows, a multiple of 8."""
    return room * (room + LANES) // 2


@subroutine
def _at(i, j):
    """Where the entry of a row and a column is, if there is one."""
    first = i & -LANES
    return first * (first + LANES) // 2 + (i & 4) * (first + LANES) + (j & -LANES) * 4 + (i & 3) * LANES + (j & 7)


@reordered
def append(inverse, size, gram, square, work):
    """Extend M by a structure z, in O(size^2), with room for it.

    `gram` are <a_i, z> + 1 for each active structure, `square` is <z, z> + 1. Returns whether z is affinely independent of
    the active set; if not, nothing has changed.
    """
    multiply(inverse, size, gram, work)
    distance, rest = square, -1.0
    for j in range(size):
        distance -= gram[j] * work[j]
        rest += work[j]
    if not distance > DEPENDENT:
        return False
    scale = 1.0 / np.sqrt(distance)
    work[size], inverse.sums[size] = -1.0, 0.0
    for j in range(size + 1):
        work[j] *= scale
        inverse.sums[j] += scale * rest * work[j]
    for j in range(size + 1, -(-(size + 1) // LANES) * LANES):
        work[j] = 0.0
    _write(inverse.base, size, work)
    for i in range(size + 1, (size | 3) + 1 if size & 3 == 0 else 0):
        _clear(inverse.base, i)
    return True


@subroutine
def _clear(base, i):
    for j in range(0, (i & -LANES) + LANES, LANES):
        store(base, _at(i, j), splat(base, 0.0))


@subroutine
def _write(base, i, row):
    for j in range(0, (i & -LANES) + LANES, LANES):
        store(base, _at(i, j), load(row, j))


@subroutine
def _read(base, i, row):
    for j in range(0, (i & -LANES) + LANES, LANES):
        store(row, j, load(base, _at(i, j)))


@reordered
def remove(inverse, size, index, carry):
    """Take a structure out of M, in O(size^2); those behind it move up.

    Rotations of R's rows make its column zero, but for one row, the `carry`, which goes. Each rotates the carry of the rows
    before with the next row, so that the rows still have no entries behind the diagonal.
    """
    base, sums, end = inverse.base, inverse.sums, -(-size // LANES) * LANES
    for j in range(0, end, LANES):
        store(carry, j, splat(carry, 0.0))
    square = 0.0
    for i in range(index, size):
        own = base[_at(i, index)]
        total = square + own * own
        kept, share = np.sqrt(square / total), own / np.sqrt(square * total) if i > index else 0.0
        _rotate(base, i, index, carry, kept, share)
        square = total
    _clear(base, size - 1)
    total = 0.0
    for j in range(size):
        total += carry[j]
    for j in range(size):
        sums[j] -= total / square * carry[j]
    for j in range(index, size - 1):
        sums[j] = sums[j + 1]


@subroutine
def _rotate(base, i, index, carry, kept, share):
    """Move a row of R up, without the entry of a structure: less a share of the carry, to which the row is added."""
    width, own = (i & -LANES) + LANES, base[_at(i, index)]
    for j in range(0, width, LANES):
        at, behind = _at(i, j), j + LANES
        entry, other = load(base, at), load(carry, j)
        if i > index and j < (i - 1 & -LANES) + LANES:
            rest = fma(other, splat(base, -share), entry * splat(base, kept))
            entering = kept * base[at + 4 * LANES] - share * carry[behind] if behind < width else 0.0
            store(base, _at(i - 1, j), keep_first(rest, index - j, shift_down(rest, entering)))
        store(carry, j, fma(entry, splat(base, own), other))


@reordered
def direction(inverse, size, slopes, newest, step):
    """The step of the weights to the minimum on the affine hull: M (e - tau 1), tau such that it sums to zero.

    `slopes` are e_i = <s - mu, a_i>, up to a constant; all but the last one are zero if only the `newest` structure's is not.
    """
    last = size - 1
    if newest:
        _read(inverse.base, last, step)
        share = step[last] * slopes[last]
        for j in range(size):
            step[j] *= share
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
    """M times a vector, which gets zeros behind its last entry."""
    base, end = inverse.base, -(-size // LANES) * LANES
    for j in range(size, end):
        vector[j] = 0.0
    for j in range(0, end, LANES):
        store(out, j, splat(base, 0.0))
    for i in range(0, size, 4):
        _multiply_rows(base, i, vector, out)


@subroutine
def _multiply_rows(base, i, vector, out):
    """The summand of four rows of R in a product."""
    first, width = _at(i, 0), (i & -LANES) + LANES
    a = b = c = d = splat(base, 0.0)
    at = first
    for j in range(0, width, LANES):
        x = load(vector, j)
        a, b = fma(load(base, at), x, a), fma(load(base, at + 8), x, b)
        c, d = fma(load(base, at + 16), x, c), fma(load(base, at + 24), x, d)
        at += 32
    a, b, c, d = splat(base, sum_of(a)), splat(base, sum_of(b)), splat(base, sum_of(c)), splat(base, sum_of(d))
    at = first
    for j in range(0, width, LANES):
        total = fma(load(base, at), a, load(out, j))
        total = fma(load(base, at + 8), b, total)
        total = fma(load(base, at + 16), c, total)
        store(out, j, fma(load(base, at + 24), d, total))
        at += 32


@subroutine
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
