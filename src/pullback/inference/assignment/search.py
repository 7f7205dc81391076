"""The assignment problem of one example, compiled: shortest augmenting paths. See README.md."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import inner


@inner
def assign(scores, stride, rows, columns, row_of, price, lowest, before, done):
    """Give each row the column of the best matching: `row_of[j]` is the row of column j, -1 for none.

    Args:
        scores: flat, float64: pair (i, j) is at i * stride + j; -inf where it is forbidden.
        stride: from one row to the next.
        rows: how many there are.
        columns: how many there are.
        row_of: `[columns + 1]`, to write; the last entry is scratch, as all that follow.
        price: `[columns + 1]`: of the columns.
        lowest: `[columns + 1]`: the shortest path to each column so far.
        before: `[columns + 1]`: the column before it on that path.
        done: `[columns + 1]`: whether it is the shortest.

    Returns:
        Whether there is a matching.
    """
    row_of[: columns + 1] = -1
    price[: columns + 1] = 0.0
    for row in range(rows):
        lowest[:columns] = np.inf
        done[: columns + 1] = False
        row_of[columns], last, length = row, columns, 0.0
        while row_of[last] >= 0:
            done[last] = True
            i = row_of[last]
            # the reduced cost of the matched pair is zero: that makes the row's own price
            own = scores[i * stride + last] - price[last] if last < columns else 0.0
            nearest, next_column = np.inf, -1
            for j in range(columns):
                if not done[j]:
                    x = scores[i * stride + j]
                    if x > -np.inf:
                        to = length + (own - (x - price[j]))
                        if to < lowest[j]:
                            lowest[j], before[j] = to, last
                    if lowest[j] < nearest:
                        nearest, next_column = lowest[j], j
            if next_column < 0:
                return False
            length, last = nearest, next_column
        for j in range(columns):
            if done[j]:
                price[j] += length - lowest[j]
        while last != columns:
            row_of[last] = row_of[before[last]]
            last = before[last]
    return True
