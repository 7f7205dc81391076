"""The assignment problem of one example, compiled: shortest augmenting paths, columns in SIMD lanes. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner
from pullback.inference._numba.lanes import BYTES, load, splat, splat_index, store, where_larger
from pullback.inference._numba.rows import load_first

LANES = BYTES // 8


@inner
def room_for(columns):
    """How many entries the scratch arrays of `assign` need: whole vectors, and one for where new rows begin."""
    return (columns // LANES + 2) * LANES


@inner
def assign(scores, stride, rows, columns, row_of, price, lowest, closed, before, number):
    """Give each row the column of the best matching: `row_of[j]` is the row of column j, -1 for none.

    Args:
        scores: flat, float64: pair (i, j) is at i * stride + j; -inf where it is forbidden.
        stride: from one row to the next.
        rows: how many there are.
        columns: how many there are.
        row_of: `[room_for(columns)]`, int64, to write; entry `columns` is scratch, as all arrays that follow.
        price: float64: of the columns.
        lowest: float64: the shortest path to each column so far.
        closed: float64: inf where that is the shortest of all, else 0.
        before: int64: the column before it on that path.
        number: int64.

    Returns:
        Whether there is a matching.
    """
    for j in range(room_for(columns)):
        row_of[j], price[j], number[j] = -1, 0.0, j
    for row in range(rows):
        for j in range(room_for(columns)):
            lowest[j], closed[j] = np.inf, 0.0
        row_of[columns], last, length = row, columns, 0.0
        while row_of[last] >= 0:
            closed[last] = np.inf
            length, last = _nearest(scores, stride, columns, row_of, price, lowest, closed, before, number, length, last)
            if last < 0:
                return False
        for j in range(columns):
            if closed[j] > 0.0:
                price[j] += length - lowest[j]
        while last != columns:
            row_of[last] = row_of[before[last]]
            last = before[last]
    return True


@inner
def _nearest(scores, stride, columns, row_of, price, lowest, closed, before, number, length, last):
    """Look on from the row of column `last`: the open column that is nearest now, the first of equals, and how far it is."""
    i, none = row_of[last], splat(scores, -np.inf)
    # the reduced cost of the matched pair is zero: that makes the row's own price
    own = splat(scores, scores[i * stride + last] - price[last] if last < columns else 0.0)
    so_far, best = splat(scores, length), splat(scores, np.inf)
    where = splat_index(best, -1)
    for j in range(0, columns, LANES):
        x = load_first(scores, i * stride + j, columns - j, none)
        shut, old = load(closed, j), load(lowest, j)
        to = so_far + (own - (x - load(price, j))) + shut
        store(before, j, where_larger(old, to, splat_index(to, last), load(before, j)))
        new = where_larger(old, to, to, old)
        store(lowest, j, new)
        new = new + shut
        where = where_larger(best, new, load(number, j), where)
        best = where_larger(best, new, new, best)
    first = (columns // LANES + 1) * LANES  # vectors behind the last column
    store(lowest, first, best)
    store(before, first, where)
    nearest, column = np.inf, -1
    for lane in range(first, first + LANES):
        x, j = lowest[lane], before[lane]
        if x < nearest or (x == nearest and 0 <= j < column):
            nearest, column = x, j
    return nearest, column
