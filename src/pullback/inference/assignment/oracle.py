"""SparseMAP's oracle of matchings: the assignment problem of one example."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.scratch import carve
from pullback.inference.assignment.search import assign, bytes_for
from pullback.inference.front.checks import OK
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    """The best matching: one pair for each row."""
    m, rows, columns = shape[1], sizes[0], sizes[1]
    column_of, at = carve(work, 0, rows, np.int64)
    if assign(scores, 0, m, rows, columns, column_of, work[at:]) != OK:
        return -1
    for i in range(rows):
        parts[i] = i * m + column_of[i]
    return rows


def shifts(shape, sizes, options, turn, parts):
    """Row i gets column i + turn, around the end: over all turns, every pair has the same weight."""
    m, rows, columns = shape[1], sizes[0], sizes[1]
    for i in range(rows):
        parts[i] = i * m + (i + turn) % columns
    return rows if rows <= columns and turn < columns else -1


def _rows(shape: tuple[int, ...]) -> np.ndarray:
    return np.repeat(np.arange(shape[0], dtype=np.int32), shape[1])


ORACLE = Oracle(best, work=lambda shape: 8 * shape[0] + 64 + bytes_for(*shape), groups=_rows, centre=shifts)
