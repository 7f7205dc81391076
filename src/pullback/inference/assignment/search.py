"""The assignment problem of one example, compiled: rows bid for columns, and shortest paths place the others. See README.md."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from pullback.inference._numba.compile import called, subroutine
from pullback.inference._numba.lanes import load, splat, splat_index, store, where_larger
from pullback.inference._numba.rows import any_nonzero, count_nan, largest_of, load_first, load_like, lowest_bit
from pullback.inference._numba.scratch import carve
from pullback.inference._numba.vectors import widen
from pullback.inference.assignment.lanes import LANES, equal, splat_eight
from pullback.inference.front.checks import INFEASIBLE, INFINITE, NAN, OK

Problem = namedtuple("Problem", "scores start stride rows columns top price lowest row_of before column_of")
"""One example and its search. `top` is of rows; `price`, `lowest`, `row_of` and `before` are of columns."""

SCANS = 3
"""How many rows may bid, per row."""
LARGEST = 1e300
"""No bid is larger: prices stay finite."""


def bytes_for(rows, columns):
    """How many bytes of scratch `assign` needs."""
    return 8 * (7 * (columns + LANES) + 2 * rows) + 9 * 64


@called
def assign(scores, start, stride, rows, columns, column_of, work):
    """Give each row the column of the best matching.

    Args:
        scores: flat, float32 or float64: pair (i, j) is at start + i * stride + j; -inf where it is forbidden.
        start: of the example.
        stride: from one row to the next.
        rows: how many there are.
        columns: how many there are, at least as many.
        column_of: `[rows]`, int64, to write: the column of each row.
        work: `bytes_for(rows, columns)` of scratch.

    Returns:
        OK; NAN or INFINITE if there is such a score; INFEASIBLE if there is no matching.
    """
    room = (columns + LANES - 1) // LANES * LANES
    top, at = carve(work, 0, rows, np.float64)
    price, at = carve(work, at, room, np.float64)
    lowest, at = carve(work, at, room, np.float64)
    row_of, at = carve(work, at, room, np.int64)
    before, at = carve(work, at, room, np.int64)
    left, at = carve(work, at, rows, np.int64)
    problem = Problem(scores, start, stride, rows, columns, top, price, lowest, row_of, before, column_of)
    status = _first_prices(problem)
    if status != OK:
        return status
    waiting = _bid(problem, left)
    closed, at = carve(work, at, columns, np.int64)
    way, at = carve(work, at, columns, np.float64)
    saved, at = carve(work, at, columns, np.float64)
    for k in range(waiting):
        if not _place(problem, left[k], closed, way, saved):
            return INFEASIBLE
    return OK


@called
def _first_prices(p):
    """Prices of zero, or of as many columns as rows the largest score of each; and a status."""
    none, nan, square = splat(p.price, -np.inf), splat(p.price, 0.0), p.rows == p.columns
    for j in range(len(p.price)):
        p.row_of[j] = -1
        p.price[j] = np.inf if j >= p.columns else -np.inf if square else 0.0
    highest, status = none, INFEASIBLE if p.rows > p.columns else OK
    for i in range(p.rows):
        best = none
        for j in range(0, p.columns, LANES):
            x = _row(p, i, j)
            best, nan = where_larger(x, best, x, best), count_nan(x, nan)
            if square:
                old = load(p.price, j)
                store(p.price, j, where_larger(x, old, x, old))
        p.top[i] = largest_of(best)
        highest = where_larger(best, highest, best, highest)
        status = INFEASIBLE if p.top[i] == -np.inf else status
    for j in range(p.columns):
        status = INFEASIBLE if p.price[j] == -np.inf else status
    return NAN if any_nonzero(nan) else INFINITE if largest_of(highest) == np.inf else status


@subroutine
def _row(p, i, j):
    """Eight scores of a row, -inf behind the last."""
    at, none = p.start + i * p.stride + j, splat_eight(p.scores, -np.inf)
    return widen(load_like(p.scores, at, none) if j + LANES <= p.columns else load_first(p.scores, at, p.columns - j, none))


@subroutine
def _worth(p, i, top, j):
    """The values of eight columns for a row: its scores less the largest one, so that no mask of a whole row costs digits."""
    return (_row(p, i, j) - top) - load(p.price, j)


@called
def _bid(p, left):
    """Rows take their best columns from each other, at prices raised to what the second best is worth.

    Returns:
        How many rows are `left` without a column.
    """
    waiting, scans = 0, SCANS * p.rows
    for row in range(p.rows):
        i = row
        while i >= 0:
            first, second = _two_best(p, i)
            scans -= 1
            j, gain = _first_free(p, i, first), first - second
            other = p.row_of[j]
            if other >= 0 and (not 0.0 < gain <= LARGEST or scans < 0):
                left[waiting] = i
                waiting += 1
                break
            if gain <= LARGEST:
                p.price[j] += gain
            p.row_of[j], p.column_of[i] = i, j
            i = other
    return waiting


@called
def _two_best(p, i):
    """The two largest scores of a row, less the prices; the same twice if two columns share it."""
    best, second, top = splat(p.price, -np.inf), splat(p.price, -np.inf), splat(p.price, p.top[i])
    for j in range(0, p.columns, LANES):
        x = _worth(p, i, top, j)
        lower = where_larger(best, x, x, best)
        second = where_larger(lower, second, lower, second)
        best = where_larger(x, best, x, best)
    first = largest_of(best)
    lanes = equal(best, splat(p.price, first))
    if lanes & (lanes - 1):
        return first, first
    return first, largest_of(where_larger(splat(p.price, first), best, best, second))


@called
def _first_free(p, i, value):
    """The first column without a row among those of this value to row i or, if that is -1, at this distance; the first of all
    if each has one.
    """
    wanted, top, found = splat(p.price, value), splat(p.price, p.top[max(i, 0)]), -1
    for j in range(0, p.columns, LANES):
        bits = equal(_worth(p, i, top, j) if i >= 0 else load(p.lowest, j), wanted)
        while bits:
            column = j + lowest_bit(bits)
            if p.row_of[column] < 0:
                return column
            found = column if found < 0 else found
            bits &= bits - 1
    return found


@called
def _place(p, start, closed, way, saved):
    """Give a row a column by the shortest path to a free one, on which rows move up by one column each."""
    for j in range(len(p.lowest)):
        p.lowest[j] = np.inf
    i, last, own, length, count = start, -1, 0.0, 0.0, 0
    while True:
        length = _scan(p, i, last, own, length)
        if length == np.inf:
            return False
        j = _first_free(p, -1, length)
        if p.row_of[j] < 0:
            break
        closed[count], way[count], saved[count] = j, length, p.price[j]
        count += 1
        i, last = p.row_of[j], j
        own = (p.scores[p.start + i * p.stride + j] - p.top[i]) - p.price[j]
        p.price[j] = p.lowest[j] = np.inf
    for k in range(count):
        p.price[closed[k]] = saved[k] + (length - way[k])
    while j >= 0:
        last = p.before[j]
        i = p.row_of[last] if last >= 0 else start
        p.row_of[j], p.column_of[i] = i, j
        j = last
    return True


@called
def _scan(p, i, last, own, length):
    """Shorten the paths to all open columns by those over row i, whose column `last` is worth `own` to it: the shortest."""
    so_far, mine, top, nearest = splat(p.price, length), splat(p.price, own), splat(p.price, p.top[i]), splat(p.price, np.inf)
    for j in range(0, p.columns, LANES):
        to = so_far + (mine - _worth(p, i, top, j))
        old = load(p.lowest, j)
        store(p.before, j, where_larger(old, to, splat_index(to, last), load(p.before, j)))
        new = where_larger(old, to, to, old)
        store(p.lowest, j, new)
        nearest = where_larger(nearest, new, new, nearest)
    return -largest_of(splat(p.price, 0.0) - nearest)
