"""The Jacobian of SparseMAP, applied: the projection onto the directions between active structures. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import lean_kernel
from pullback.inference.records import Memory, Plan, Record
from pullback.inference.sparsemap.active_set import ALL, Inverse, append, direction, inverse_shapes, padded

Scratch = Record(
    "Scratch",
    marked=(np.bool_, 1),  # [K]: the parts of one structure
    inverse=Inverse,
    gram=(np.float64, 1),
    slopes=(np.float64, 1),
    step=(np.float64, 1),
    kept=(np.int32, 1),  # the structures that are independent
)
scratch_of = Scratch.reader


def make_scratch(workers: int, largest: int, parts: int) -> Memory:
    """For `apply`: active sets of up to `largest` structures."""
    shapes = inverse_shapes(largest, "inverse.") | dict.fromkeys(["gram", "slopes", "step", "kept"], (padded(largest),))
    return Memory(Plan(Scratch, shapes | {"marked": (parts,)}, zeros=1), workers)


@lean_kernel
def apply(worker, workers, vertices, counts, vectors, scratches, result):
    """Project the vectors `[B, K]` of the worker's share of examples; what no active structure uses is left alone."""
    scratch, width = scratch_of(scratches, worker), vertices.shape[2]
    inverse, gram, slopes, step = scratch.inverse, scratch.gram, scratch.slopes, scratch.step
    kept_rows, marked = scratch.kept, scratch.marked
    for b in range(worker, len(counts), workers):
        kept = 0  # the search's inverse may be too old to tell a structure that depends on the others; this one is new
        for i in range(counts[b]):
            parts = 0
            while parts < width and vertices[b, i, parts] >= 0:
                marked[vertices[b, i, parts]] = True
                parts += 1
            for j in range(kept):
                shared = 1
                for at in range(width):
                    part = vertices[b, kept_rows[j], at]
                    shared += part >= 0 and marked[part]
                gram[j] = shared
            for at in range(parts):
                marked[vertices[b, i, at]] = False
            kept_rows[kept] = i
            kept += append(inverse, kept, gram, parts + 1.0, step)
        for _ in range(2):  # the second time for what rounding has left
            for i in range(kept):
                slopes[i] = 0.0
                for at in range(width):
                    part = vertices[b, kept_rows[i], at]
                    if part >= 0:
                        slopes[i] += vectors[b, part] - result[b, part]
                slopes[i] -= slopes[0] if i > 0 else 0.0
            slopes[0] = 0.0
            direction(inverse, kept, slopes, ALL, step)
            for i in range(kept):
                for at in range(width):
                    if vertices[b, kept_rows[i], at] >= 0:
                        result[b, vertices[b, kept_rows[i], at]] += step[i]
