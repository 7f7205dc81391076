"""The Jacobian of SparseMAP, applied: the projection onto the directions between active trees. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import kernel
from pullback.inference.sparsemap.active_set import append, direction
from pullback.inference.sparsemap.overlap import padded, shared


@kernel
def apply(worker, workers, heads, sizes, lengths, vectors, result):
    """Project the vectors `[B, n, n]` of the worker's share of sentences; what no active tree uses is left alone."""
    largest, width = sizes.max(), padded(heads.shape[2])
    rows = np.full((largest, width), -1, np.int16)
    inverse, sums = np.empty((1, largest, largest)), np.empty((1, largest))
    gram, slopes, step = np.empty(largest), np.empty(largest), np.empty(largest)
    for b in range(worker, len(sizes), workers):
        size, length = sizes[b], lengths[b]
        if length == 0:
            continue
        for i in range(size):
            slopes[i] = 0.0
            for m in range(length):
                rows[i, m] = heads[b, i, m]
                slopes[i] += vectors[b, heads[b, i, m], m]
            if i > 0:
                slopes[i] -= slopes[0]
            for m in range(length, width):
                rows[i, m] = -1
            for j in range(i):
                gram[j] = shared(rows, i * width, rows, j * width, width) - (width - length)
            append(inverse, sums, 0, i, gram, float(length), step)
        slopes[0] = 0.0
        direction(inverse, sums, 0, 0, size, slopes, step)
        for i in range(size):
            for m in range(length):
                result[b, rows[i, m], m] += step[i]
