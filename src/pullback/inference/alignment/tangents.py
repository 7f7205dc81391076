"""Entropies of alignments, and derivatives of marginals, on the CPU: from the chances that `kernels.upward` has kept.

A second sweep finds the tangents of the cells: with p the chances of the three moves into a cell,

    tangent(i, j) = direction(i, j) + sum over moves of p tangent(i - down, j - right),

or, for entropies, with -log p added to the tangent of each move instead of the direction. Along it, chances change by
p (tangent of the move - their mean). The way back is that of marginals, for dual numbers. All of it is in float64.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, load, store
from pullback.inference._numba.packing import clear
from pullback.inference._numba.rows import shift_down, shift_up
from pullback.inference._numba.vectors import load_wide, narrow, select_positive, splat_wide, widen
from pullback.inference._numba.ways import tangent_of
from pullback.inference.alignment.kernels import enter, lines_for, next_cells, put_cells, upward
from pullback.inference.front.modes import Mode


@subroutine
def _band_tangents(direction, lines, rows, columns, surprise, chances, chance_tangents, at, keep):
    """Tangents of a band: `edge` gets those of its last row, `last` those of the last step; if `keep`, of the chances too."""
    bases, place, last, edge, _, _, block = lines
    lanes, zero, one = len(bases), splat_wide(0.0, chances), splat_wide(1.0, chances)
    one_ago, two_ago, ready = zero, zero, 0
    for t in range(columns + rows - 1):
        to = at + 3 * lanes * t
        a, b, c = widen(load(chances, to)), widen(load(chances, to + lanes)), widen(load(chances, to + 2 * lanes))
        corner = tangent_of(a, shift_up(two_ago, edge[t]), surprise, chances)
        above = tangent_of(b, shift_up(one_ago, edge[t + 1]), surprise, chances)
        left = tangent_of(c, one_ago, surprise, chances)
        total = a + b + c  # in float32 not quite 1, which tangents would feel that grow with every step of a path
        tangent = (a * corner + b * above + c * left) / select_positive(total, total, one)
        if keep:
            store(chance_tangents, to, a * (corner - tangent))
            store(chance_tangents, to + lanes, b * (above - tangent))
            store(chance_tangents, to + 2 * lanes, c * (left - tangent))
        if not surprise:
            s, ready = next_cells(direction, bases, place, block, t, ready, rows, columns, 0.0)
            tangent = tangent + widen(s)
        two_ago, one_ago = one_ago, tangent
        store(last, 0, tangent)
        if t >= lanes - 1:
            edge[t - lanes + 2] = last[lanes - 1]
    edge[0] = 0.0


@subroutine
def _back(n, m, stride, begin, chances, chance_tangents, pitch, edge, lines, out):
    """Write the derivatives of the marginals, from the last band to the first.

    The halves of `edge` hold what enters from the row below, and its derivative.
    """
    bases, place, line, block = lines[0], lines[1], lines[2], lines[6]
    lanes, half, zero = len(line), len(edge) // 2, splat_wide(0.0, chances)
    edge[:] = 0.0
    for first in range((n - 1) // lanes * lanes, -1, -lanes):
        rows = min(lanes, n - first)
        enter(begin, stride, first, rows, bases, place)
        for lane in range(lanes):
            line[lane] = 1.0 if first + lane == n - 1 else 0.0
        left, up, corner = load_wide(line, 0, chances), zero, zero
        left_tangent, up_tangent, corner_tangent = zero, zero, zero
        for t in range(m + rows - 2, -1, -1):
            column, at = t - lanes + 1, first // lanes * pitch + 3 * lanes * t
            inside = rows == lanes and 0 <= column < m
            q = left + shift_down(up, edge[column] if inside else 0.0)
            q_tangent = left_tangent + shift_down(up_tangent, edge[half + column] if inside else 0.0)
            a, b, c = widen(load(chances, at)), widen(load(chances, at + lanes)), widen(load(chances, at + 2 * lanes))
            up = q * b + corner
            up_tangent = select_positive(q, q_tangent * b + q * load_wide(chance_tangents, at + lanes, chances), zero)
            up_tangent = up_tangent + corner_tangent
            corner, left = q * a, q * c
            corner_tangent = select_positive(q, q_tangent * a + q * load_wide(chance_tangents, at, chances), zero)
            left_tangent = select_positive(q, q_tangent * c + q * load_wide(chance_tangents, at + 2 * lanes, chances), zero)
            if t < m:
                store(line, 0, up)
                edge[t] = line[0]
                store(line, 0, up_tangent)
                edge[half + t] = line[0]
            put_cells(block, narrow(q_tangent, chances), bases, t, rows, m, out)


@kernel
def tangents(worker, workers, scores, rows, columns, down, mode, direction, out, value, codes):
    """Write entropies, or tangents of log-partitions, and derivatives of marginals; otherwise as `kernels.sums`."""
    lanes, stride, keep = lanes_in(scores), scores.shape[2], mode != Mode.ENTROPY
    size, flat, flat_out, flat_direction = scores.shape[1] * stride, scores.reshape(-1), out.reshape(-1), direction.reshape(-1)
    pitch, bands = 3 * lanes * (stride + lanes - 1), -(-scores.shape[1] // lanes)
    other, lines = np.empty(2 * (stride + 2)), lines_for(scores)
    edge = lines[3]
    chances, chance_tangents = aligned(pitch * bands, scores), aligned(pitch * bands if keep else lanes, edge)
    for b in range(worker, len(scores), workers):
        n, m, begin = min(max(rows[b], 0), scores.shape[1]), min(max(columns[b], 0), stride), b * size
        codes[b] = n != rows[b] or m != columns[b]
        value[b] = 0.0
        if keep:
            clear(flat_out, begin, begin + size)
        if n == 0 or m == 0:
            codes[b] |= n != m
            value[b] = 0.0 if n == m else -np.inf
            continue
        log_z, worst = upward(flat, begin, stride, n, m, down, lines, chances, pitch, True)
        codes[b] |= worst == np.inf or log_z == -np.inf
        if codes[b]:
            value[b] = log_z
            continue
        edge[:] = 0.0
        for first in range(0, n, lanes):
            count, at = min(lanes, n - first), first // lanes * pitch
            enter(begin, stride, first, count, lines[0], lines[1])
            _band_tangents(flat_direction, lines, count, m, mode != Mode.TANGENT, chances, chance_tangents, at, keep)
        value[b] = lines[2][(n - 1) % lanes]
        if keep:
            _back(n, m, stride, begin, chances, chance_tangents, pitch, other, lines, flat_out)
