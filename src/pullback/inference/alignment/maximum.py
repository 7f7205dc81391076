"""The best alignments on the CPU, one example at a time, by bands of 32 rows (`_numba/bands.py`), in float64.

If paths may move down, each row is a column behind the row above it: in step t, row r is at column t - r, the cell to the left
is the same row one step ago, that above the row above one step ago, and that on the diagonal the row above two steps ago. If
they may not, all rows are at the same column, and the cell on the diagonal is the row above one step ago. The first row gets
those of the row above the band from `edge`, which holds them column by column.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.bands import ROWS, from_above, lane_of, last_row, load_widened, read_block, splat_band
from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, larger, splat, store, where_larger
from pullback.inference._numba.packing import clear
from pullback.inference._numba.rows import any_nonzero, nonzero, prefetch_beside
from pullback.inference._numba.vectors import splat_wide
from pullback.inference.alignment.kernels import start as start_edge


@subroutine
def _best_band(scores, band, steps, block, edge, moves, at, last):
    """Maxima over a band: `edge` becomes its last row, `last` the values of the last step. Whether NaN or +inf was read.

    `moves` get two bits for each row and step: whether its cell is entered from the left or, 32 bits ahead, from above.
    """
    lag, nothing = band[2], splat_wide(-np.inf, splat_band(scores, 0.0))
    lanes, yes, no = lanes_in(scores), splat_wide(1.0, nothing), splat_wide(0.0, nothing)
    here, corner, bad = nothing, from_above(nothing, edge[0]), splat(scores, 0.0)
    for start in range(0, steps, lanes):
        bad = read_block(scores, band, start, block, bad)
        for t in range(start, min(start + lanes, steps)):
            prefetch_beside(scores, band[0] + band[1] * ROWS + t * ROWS)
            prefetch_beside(scores, band[0] + band[1] * ROWS + t * ROWS + lanes)
            above = from_above(here, edge[t + lag])
            best = larger(above, corner) if lag else above
            ways = nonzero(where_larger(here, best, yes, no))
            moves[at + t] = ways | nonzero(where_larger(above, corner, yes, no)) << 32 if lag else ways
            if t >= (ROWS - 1) * lag:
                edge[t - (ROWS - 1) * lag] = last_row(here)
            here = larger(here, best) + load_widened(block, (t - start) * ROWS)
            corner = above
    edge[max(steps - (ROWS - 1) * lag, 0)] = last_row(here)
    store(last, 0, here)
    return any_nonzero(bad)


@subroutine
def _follow(moves, pitch, n, m, lag, stride, begin, z):
    """From the last cell back to the first; ties: the diagonal move first, then down, then right."""
    j, row = m - 1, (n - 1) % ROWS
    for first in range((n - 1) // ROWS * ROWS, -1, -ROWS):
        here, at = begin + first * stride, first // ROWS * pitch + j + row * lag
        ways = moves[at]
        while row >= 0:
            z[here + row * stride + j] = 1.0
            one_ago, two_ago = moves[max(at - 1, 0)], moves[max(at - 2, 0)]  # read before it is known which is next
            ways >>= lane_of(row)
            right = ways & 1
            down = (ways >> 32) & ~right & 1 if lag else 0
            ways = one_ago if right or down or not lag else two_ago
            row -= 1 - right
            j -= 1 - down
            at -= 1 if right or down or not lag else 2
        row = ROWS - 1


@subroutine
def _best(flat, begin, stride, n, m, lag, block, edge, last, moves, pitch, z):
    """The score of the best path of an example, which is written to z; +inf if a score is NaN or +inf."""
    bad = False
    start_edge(edge, -np.inf)
    for first in range(0, n, ROWS):
        rows, at = min(ROWS, n - first), first // ROWS * pitch
        band = begin + first * stride, stride, lag, rows, m
        bad |= _best_band(flat, band, m + (rows - 1) * lag, block, edge, moves, at, last)
    best = last[lane_of((n - 1) % ROWS)]
    if bad or not best > -np.inf:
        return np.inf if bad else -np.inf
    _follow(moves, pitch, n, m, lag, stride, begin, z)
    return best


@kernel
def argmax(worker, workers, scores, rows, columns, down, z, best, codes):
    """Write the best paths and their scores, and zeros elsewhere; otherwise as `kernels.sums`."""
    stride = scores.shape[2]
    size, flat, flat_z = scores.shape[1] * stride, scores.reshape(-1), z.reshape(-1)
    pitch, bands = stride + ROWS - 1, -(-scores.shape[1] // ROWS)
    edge, moves = np.empty(stride + ROWS + 2), np.empty(pitch * bands, np.int64)
    last, block = aligned(ROWS, edge), aligned(ROWS * lanes_in(scores), scores)
    for b in range(worker, len(scores), workers):
        n, m, begin = min(max(rows[b], 0), scores.shape[1]), min(max(columns[b], 0), stride), b * size
        codes[b] = n != rows[b] or m != columns[b]
        clear(flat_z, begin, begin + size)
        if n == 0 or m == 0:
            codes[b] |= n != m
            best[b] = 0.0 if n == m else -np.inf
            continue
        if down:
            best[b] = _best(flat, begin, stride, n, m, 1, block, edge, last, moves, pitch, flat_z)
        else:
            best[b] = _best(flat, begin, stride, n, m, 0, block, edge, last, moves, pitch, flat_z)
        codes[b] |= not -np.inf < best[b] < np.inf
