"""The Jacobian of SparseMAP, applied: the projection onto the directions between active trees. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import kernel
from pullback.inference.sparsemap.active_set import append, direction, make_inverse
from pullback.inference.sparsemap.overlap import padded, shared


@kernel
def apply(worker, workers, heads, sizes, lengths, vectors, result):
    """Project the vectors `[B, n, n]` of the worker's share of sentences; what no active tree uses is left alone."""
    largest, width = sizes.max(), padded(heads.shape[2])
    rows = np.full((largest, width), -1, np.int16)
    inverse = make_inverse(largest)
    gram, slopes, step = np.empty(largest), np.empty(largest), np.empty(largest)
    for b in range(worker, len(sizes), workers):
        size, length = sizes[b], lengths[b]
        if length == 0:
            continue
        kept = 0  # the search's inverse may be too old to tell a tree that depends on the others; this one is new
        for i in range(size):
            slopes[kept] = 0.0
            for m in range(length):
                rows[kept, m] = heads[b, i, m]
                slopes[kept] += vectors[b, heads[b, i, m], m]
            if kept > 0:
                slopes[kept] -= slopes[0]
            for m in range(length, width):
                rows[kept, m] = -1
            for j in range(kept):
                gram[j] = shared(rows, kept * width, rows, j * width, width) - (width - length)
            kept += append(inverse, kept, gram, float(length), step)
        slopes[0] = 0.0
        direction(inverse, kept, slopes, -1, step)
        for i in range(kept):
            for m in range(length):
                result[b, rows[i, m], m] += step[i]
