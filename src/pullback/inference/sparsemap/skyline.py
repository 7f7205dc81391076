"""Cholesky factors of sparse matrices whose rows are kept from their first entry to the diagonal.

Row i is `base[starts[i] : starts[i + 1]]`, its columns begin at `firsts[i]`. Entries outside stay zero in the factor.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called
from pullback.inference.sparsemap.active_set import reordered


@called
def outline(firsts, starts, size):
    """Where each row lies, from where it begins; returns how many entries there are."""
    starts[0] = 0
    for i in range(size):
        starts[i + 1] = starts[i] + i - firsts[i] + 1
    return starts[size]


@called
def factor(base, firsts, starts, size):
    """Write L over a positive definite matrix L L^T."""
    for i in range(size):
        own, first = starts[i] - firsts[i], firsts[i]
        for j in range(first, i):
            other, begin = starts[j] - firsts[j], max(first, firsts[j])
            rest = base[own + j] - _dot(base, own + begin, other + begin, j - begin)
            base[own + j] = rest / base[other + j]
        base[own + i] = np.sqrt(base[own + i] - _dot(base, own + first, own + first, i - first))


@called
def solve(base, firsts, starts, size, x):
    """Replace x by (L L^T)^-1 x."""
    for i in range(size):
        own, first = starts[i] - firsts[i], firsts[i]
        total = x[i]
        for j in range(first, i):
            total -= base[own + j] * x[j]
        x[i] = total / base[own + i]
    for i in range(size - 1, -1, -1):
        own = starts[i] - firsts[i]
        x[i] /= base[own + i]
        for j in range(firsts[i], i):
            x[j] -= base[own + j] * x[i]


@reordered
def _dot(base, at, other, count):
    total = 0.0
    for k in range(count):
        total += base[at + k] * base[other + k]
    return total
