"""The linear algebra of the active set, compiled: the inverse of its Gram matrix, kept up to date. See README.md.

Each lane has an active set of its own. M stands for the inverse of the lane's Gram matrix; of its row i the first
`size` entries are in use.
"""

from __future__ import annotations

from typing import Any

import numba

from pullback.inference.compile import lean

DEPENDENT = 1e-4  # squared distances to the span of the others: rounding is about 1e-6 at most, others at least 0.01

_njit: Any = numba.njit  # its types do not know _nrt
# For loops that may sum in any order, which vectors need.
reordered = _njit(error_model="numpy", boundscheck=False, _nrt=False, fastmath={"reassoc", "nsz", "contract"})


@reordered
def append(inverse, sums, lane, size, gram, square, work):
    """Extend M by a structure z, in O(size^2).

    Args:
        inverse: M, `[lanes, capacity, capacity]`, capacity > size.
        sums: M 1, the sum of each row, `[lanes, capacity]`.
        lane: whose.
        size: of the active set before.
        gram: <a_i, z> for each active structure.
        square: <z, z>.
        work: scratch, `[capacity]`.

    Returns:
        Whether z is affinely independent of the active set; if not, nothing has changed.
    """
    for j in range(size):
        work[j] = 0.0
    for i in range(size):
        share = gram[i]
        for j in range(size):
            work[j] += share * inverse[lane, i, j]
    distance, rest = square, -1.0
    for j in range(size):
        distance -= gram[j] * work[j]
        rest += work[j]
    if not distance > DEPENDENT:
        return False
    scale = 1.0 / distance
    for i in range(size):
        share = scale * work[i]
        for j in range(size):
            inverse[lane, i, j] += share * work[j]
        inverse[lane, i, size] = -share
    for j in range(size):
        inverse[lane, size, j] = -scale * work[j]
        sums[lane, j] += scale * rest * work[j]
    inverse[lane, size, size] = scale
    sums[lane, size] = -scale * rest
    return True


@reordered
def remove(inverse, sums, lane, size, index):
    """Take a structure out of M, in O(size^2); the last one takes its place."""
    last = size - 1
    scale = 1.0 / inverse[lane, index, index]
    for i in range(size):
        share = scale * inverse[lane, i, index]
        if i != index:
            for j in range(size):
                inverse[lane, i, j] -= share * inverse[lane, index, j]
            sums[lane, i] -= share * sums[lane, index]
    for i in range(last):
        inverse[lane, i, index] = inverse[lane, i, last]
    for j in range(size):
        inverse[lane, index, j] = inverse[lane, last, j]
    inverse[lane, index, index] = inverse[lane, last, last]
    sums[lane, index] = sums[lane, last]


@reordered
def direction(inverse, sums, lane, first, size, slopes, step):
    """The step of the weights to the minimum on the affine hull: M (e - tau 1), tau such that it sums to zero.

    Args:
        inverse: M.
        sums: M 1.
        lane: whose.
        first: where the slopes begin that are not zero.
        size: of the active set.
        slopes: e_i = <s - mu, a_i>, up to a constant.
        step: to write.
    """
    for j in range(size):
        step[j] = slopes[first] * inverse[lane, first, j]
    for i in range(first + 1, size):
        for j in range(size):
            step[j] += slopes[i] * inverse[lane, i, j]
    total, norm = 0.0, 0.0
    for j in range(size):
        total += step[j]
        norm += sums[lane, j]
    tau = total / norm
    for j in range(size):
        step[j] -= tau * sums[lane, j]


@lean
def move(weights, lane, size, step):
    """Take the step, or as much of it as there is before a weight vanishes.

    Returns:
        Which part of it was taken, and whose weight vanishes: -1 if all of it was.
    """
    vanishing = 0
    for i in range(size):
        vanishing += weights[lane, i] + step[i] <= 0.0
    far, blocking = 1.0, -1
    if vanishing > 0:
        for i in range(size):
            if weights[lane, i] + far * step[i] <= 0.0 and step[i] < 0.0:
                far, blocking = weights[lane, i] / -step[i], i
    for i in range(size):
        weights[lane, i] += far * step[i]
    return far, blocking
