"""Entropies of alignments, and derivatives of marginals, on the CPU: from the chances that `kernels.upward` has kept.

A second sweep finds the rates of the cells: with p the chances of the three moves into a cell,

    rate(i, j) = direction(i, j) + sum over moves of p rate(i - down, j - right),

or, for entropies, with -log p added to the rate of each move instead of the direction. Along it, chances change by
p (rate of the move - their mean). The way back is that of marginals, for dual numbers. All of it is in float64.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, load, store
from pullback.inference._numba.rows import shift_down, shift_up
from pullback.inference._numba.vectors import load_wide, select_positive, splat_wide, widen
from pullback.inference._numba.ways import rate_of
from pullback.inference.alignment.kernels import cells, enter, upward

SLOPE, ENTROPY, ENTROPY_SLOPE = range(3)
"""The results that `slopes` writes."""


@subroutine
def _rates(direction, lines, rows, columns, surprise, chances, shifts, at, keep):
    """Rates of a band: `edge` gets those of its last row, `last` those of the last step; if `keep`, `shifts` of the chances."""
    bases, place, last, edge = lines
    lanes, zero, one = len(bases), splat_wide(0.0, chances), splat_wide(1.0, chances)
    one_ago, two_ago = zero, zero
    for t in range(columns + rows - 1):
        to = at + 3 * lanes * t
        a, b, c = widen(load(chances, to)), widen(load(chances, to + lanes)), widen(load(chances, to + 2 * lanes))
        corner = rate_of(a, shift_up(two_ago, edge[t]), surprise, chances)
        above = rate_of(b, shift_up(one_ago, edge[t + 1]), surprise, chances)
        left = rate_of(c, one_ago, surprise, chances)
        total = a + b + c  # in float32 not quite 1, which rates would feel that grow along a path
        rate = (a * corner + b * above + c * left) / select_positive(total, total, one)
        if keep:
            store(shifts, to, a * (corner - rate))
            store(shifts, to + lanes, b * (above - rate))
            store(shifts, to + 2 * lanes, c * (left - rate))
        if not surprise:
            rate = rate + widen(cells(direction, bases, place, t, rows, columns, 0.0))
        two_ago, one_ago = one_ago, rate
        store(last, 0, rate)
        if t >= lanes - 1:
            edge[t - lanes + 2] = last[lanes - 1]
    edge[0] = 0.0


@subroutine
def _back(n, m, stride, begin, chances, shifts, pitch, edge, line, out):
    """Write the derivatives of the marginals, from the last band to the first.

    The halves of `edge` hold what enters from the row below, and its derivative.
    """
    lanes, half, zero = len(line), len(edge) // 2, splat_wide(0.0, chances)
    edge[:] = 0.0
    for first in range((n - 1) // lanes * lanes, -1, -lanes):
        rows = min(lanes, n - first)
        for lane in range(lanes):
            line[lane] = 1.0 if first + lane == n - 1 else 0.0
        left, up, corner = load_wide(line, 0, chances), zero, zero
        left_slope, up_slope, corner_slope = zero, zero, zero
        for t in range(m + rows - 2, -1, -1):
            column, at = t - lanes + 1, first // lanes * pitch + 3 * lanes * t
            inside = rows == lanes and 0 <= column < m
            q = left + shift_down(up, edge[column] if inside else 0.0)
            slope = left_slope + shift_down(up_slope, edge[half + column] if inside else 0.0)
            a, b, c = widen(load(chances, at)), widen(load(chances, at + lanes)), widen(load(chances, at + 2 * lanes))
            up = q * b + corner
            up_slope = select_positive(q, slope * b + q * load_wide(shifts, at + lanes, chances), zero) + corner_slope
            corner, corner_slope = q * a, select_positive(q, slope * a + q * load_wide(shifts, at, chances), zero)
            left, left_slope = q * c, select_positive(q, slope * c + q * load_wide(shifts, at + 2 * lanes, chances), zero)
            if t < m:
                store(line, 0, up)
                edge[t] = line[0]
                store(line, 0, up_slope)
                edge[half + t] = line[0]
            store(line, 0, slope)
            for lane in range(max(t - m + 1, 0), min(rows - 1, t) + 1):
                out[begin + (first + lane) * stride + t - lane] = line[lane]


@kernel
def slopes(worker, workers, scores, rows, columns, down, what, direction, out, value, codes):
    """Write entropies, or rates of log-partitions, and derivatives of marginals over zeros; `codes` as of `kernels.sums`."""
    lanes, stride, keep = lanes_in(scores), scores.shape[2], what != ENTROPY
    size, flat, flat_out, along = scores.shape[1] * stride, scores.reshape(-1), out.reshape(-1), direction.reshape(-1)
    pitch, bands = 3 * lanes * (stride + lanes - 1), -(-scores.shape[1] // lanes)
    edge, other = np.empty(stride + lanes + 2), np.empty(2 * (stride + 2))
    chances, shifts = aligned(pitch * bands, scores), aligned(pitch * bands if keep else lanes, edge)
    lines = np.empty(lanes, np.int64), aligned(lanes, scores), aligned(lanes, edge), edge
    for b in range(worker, len(scores), workers):
        n, m, begin = rows[b], columns[b], b * size
        value[b] = 0.0
        if n == 0 or m == 0:
            codes[b] = n != m
            value[b] = 0.0 if n == m else -np.inf
            continue
        log_z, worst = upward(flat, begin, stride, n, m, down, lines, chances, pitch, True)
        codes[b] = worst == np.inf or log_z == -np.inf
        if codes[b]:
            value[b] = log_z
            continue
        edge[:] = 0.0
        for first in range(0, n, lanes):
            count, at = min(lanes, n - first), first // lanes * pitch
            enter(begin, stride, first, count, lines[0], lines[1])
            _rates(along, lines, count, m, what != SLOPE, chances, shifts, at, keep)
        value[b] = lines[2][(n - 1) % lanes]
        if keep:
            _back(n, m, stride, begin, chances, shifts, pitch, other, lines[2], flat_out)
