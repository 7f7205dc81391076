"""The Jacobian of SparseMAP, applied: the projection onto the directions between active trees. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import inner, kernel
from pullback.inference.sparsemap.active_set import append, direction


@kernel
def apply(worker, workers, heads, sizes, lengths, vectors, result):
    """Project the vectors `[B, n, n]` of the worker's share of sentences; what no active tree uses is left alone."""
    largest = sizes.max()
    inverse, sums = np.empty((1, largest, largest)), np.empty((1, largest))
    gram, slopes, step = np.empty(largest), np.empty(largest), np.empty(largest)
    for b in range(worker, len(sizes), workers):
        size, length = sizes[b], lengths[b]
        for i in range(size):
            _shared(heads, b, i, length, gram)
            append(inverse, sums, 0, i, gram, float(length), step)
            slopes[i] = 0.0
            for m in range(length):
                slopes[i] += vectors[b, heads[b, i, m], m]
        for i in range(size - 1, -1, -1):
            slopes[i] -= slopes[0]
        direction(inverse, sums, 0, size, slopes, step)
        for i in range(size):
            for m in range(length):
                result[b, heads[b, i, m], m] += step[i]


@inner
def _shared(heads, b, i, length, gram):
    """How many arcs tree i shares with each one before it."""
    for j in range(i):
        count = 0
        for m in range(length):
            count += heads[b, i, m] == heads[b, j, m]
        gram[j] = count
