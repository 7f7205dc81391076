"""SparseMAP's oracle of matchings: the assignment problem of one example."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.scratch import carve
from pullback.inference.assignment.search import assign, room_for
from pullback.inference.sparsemap.oracle import Oracle


def best(scores, shape, sizes, options, work, parts):
    """The best matching: one pair for each row."""
    m, rows, columns = shape[1], sizes[0], sizes[1]
    room = room_for(m)
    row_of, at = carve(work, 0, room, np.int64)
    price, at = carve(work, at, room, np.float64)
    lowest, at = carve(work, at, room, np.float64)
    closed, at = carve(work, at, room, np.float64)
    before, at = carve(work, at, room, np.int64)
    number, at = carve(work, at, room, np.int64)
    if not assign(scores, m, rows, columns, row_of, price, lowest, closed, before, number):
        return -1
    for j in range(columns):
        if row_of[j] >= 0:
            parts[row_of[j]] = row_of[j] * m + j
    return rows


def shifts(shape, sizes, options, turn, parts):
    """Row i gets column i + turn, around the end: over all turns, every pair has the same weight."""
    m, rows, columns = shape[1], sizes[0], sizes[1]
    for i in range(rows):
        parts[i] = i * m + (i + turn) % columns
    return rows if rows <= columns and turn < columns else -1


def _rows(shape: tuple[int, ...]) -> np.ndarray:
    return np.repeat(np.arange(shape[0], dtype=np.int32), shape[1])


ORACLE = Oracle(best, work=lambda shape: 6 * (8 * (shape[1] + 16) + 64), groups=_rows, centre=shifts)
