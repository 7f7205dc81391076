"""Monotone alignments on the CPU, one example at a time: a band of rows in SIMD lanes, each a column behind the row above.

In step t of a band, lane r is at column t - r. The cell to the left was the same lane one step ago, the cell above the lane
below one step ago, and the cell on the diagonal that lane two steps ago; lane 0 gets those of the row above the band from
`edge`, which holds them column by column. Sums are numbers m 2^k with m in the precision of the scores, maxima float64.
For marginals, the three chances of each cell to be entered by a move are kept: O(n m) numbers.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.inference._numba.compile import inner, kernel, subroutine
from pullback.inference._numba.lanes import aligned, gather, lanes_in, larger, load, splat, store, where_larger
from pullback.inference._numba.packing import clear
from pullback.inference._numba.random_kernels import uniform
from pullback.inference._numba.rows import any_nonzero, count_nan, largest_of, nonzero, prefetch_beside, shift_down, shift_up
from pullback.inference._numba.vectors import pack_block, splat_wide, unpack_block, widen
from pullback.inference._numba.ways import NOTHING, merged
from pullback.inference.front.modes import Mode


@subroutine
def enter(begin, stride, first, rows, bases, place):
    """Where the rows of a band begin; lanes without a row repeat the first."""
    for lane in range(len(bases)):
        bases[lane] = begin + (first + lane) * stride - lane if lane < rows else begin + first * stride
        place[lane] = lane


@subroutine
def cells(scores, bases, place, t, rows, columns, fill):
    """The values of an array at the cells of step t; `fill` for lanes that are not at a cell."""
    none, number = splat(scores, fill), load(place, 0)
    x = gather(scores, bases, t)
    x = where_larger(splat(scores, min(t, rows - 1) + 0.5), number, x, none)
    return where_larger(number, splat(scores, t - columns + 0.5), x, none)


@subroutine
def next_cells(scores, bases, place, block, t, ready, rows, columns, fill):
    """The values of an array at the cells of step t, and which step comes next; `block` has those of the steps before `ready`.

    Lanes that are not at a cell get `fill`.
    """
    lanes = len(bases)
    if t == ready and t >= lanes - 1 and t + lanes <= columns:
        pack_block(scores, bases, t, block, 0)
        ready = t + lanes
    if t < ready:
        return load(block, (t - ready + lanes) * lanes), ready
    return cells(scores, bases, place, t, rows, columns, fill), t + 1


@subroutine
def _band(scores, stride, lines, rows, columns, down, chances, at, keep):
    """Sums over a band; the edges become its last row, the last lines the values of the last step: m 2^k.

    Returns +inf where a score is NaN or +inf.
    """
    bases, place, last, edge, last_m, edge_m, block = lines
    lanes, nothing, one = len(bases), splat_wide(NOTHING, scores), splat(scores, 1.0)
    one_ago, two_ago = (one, nothing), (one, nothing)
    worst, nan, ready = splat(scores, -np.inf), splat(scores, 0.0), 0
    below = bases[0] + lanes * stride
    for t in range(columns + rows - 1):
        prefetch_beside(scores, below + t * lanes)  # the next band, whose rows are too short for the processor to foresee
        s, ready = next_cells(scores, bases, place, block, t, ready, rows, columns, -np.inf)
        worst, nan = larger(s, worst), count_nan(s, nan)
        corner = shift_up(two_ago[0], edge_m[t]), shift_up(two_ago[1], edge[t])
        above = one, nothing
        if down:
            above = shift_up(one_ago[0], edge_m[t + 1]), shift_up(one_ago[1], edge[t + 1])
        normal = t % 8 < 2  # two steps in turn, as diagonal moves take two: no m grows for more than eight
        value = merged(scores, corner, above, one_ago, s, chances, at + 3 * lanes * t, lanes, keep, normal)
        two_ago, one_ago = one_ago, value
        store(last_m, 0, value[0])
        store(last, 0, value[1])
        if t >= lanes - 1:
            edge_m[t - lanes + 2], edge[t - lanes + 2] = last_m[lanes - 1], last[lanes - 1]
    edge[0] = NOTHING
    return np.inf if any_nonzero(nan) else np.float64(largest_of(worst))


@subroutine
def _best_band(scores, stride, bases, place, block, rows, columns, down, edge, last, moves, at):
    """Maxima over a band; `moves` get two bits for each lane and step: whether it is entered from above or, 16 bits ahead,
    from the left. Otherwise as `_band`.
    """
    lanes, nothing = len(bases), splat_wide(-np.inf, scores)
    yes, no = splat_wide(1.0, scores), splat_wide(0.0, scores)
    one_ago, two_ago = nothing, nothing
    worst, nan = splat(scores, -np.inf), splat(scores, 0.0)
    ready, below = 0, bases[0] + lanes * stride
    for t in range(columns + rows - 1):
        prefetch_beside(scores, below + t * lanes)
        s, ready = next_cells(scores, bases, place, block, t, ready, rows, columns, -np.inf)
        worst, nan = larger(s, worst), count_nan(s, nan)
        corner, above = shift_up(two_ago, edge[t]), shift_up(one_ago, edge[t + 1]) if down else nothing
        best = larger(above, corner)
        from_above, from_left = where_larger(above, corner, yes, no), where_larger(one_ago, best, yes, no)
        moves[at + t] = nonzero(from_above) | nonzero(from_left) << 16
        two_ago, one_ago = one_ago, larger(one_ago, best) + widen(s)
        store(last, 0, one_ago)
        if t >= lanes - 1:
            edge[t - lanes + 2] = last[lanes - 1]
    edge[0] = -np.inf
    return np.inf if any_nonzero(nan) else np.float64(largest_of(worst))


@subroutine
def _start(edge, nothing):
    """The row above the first: only the corner of the first cell has a value."""
    edge[:] = nothing
    edge[0] = 0.0


@subroutine
def put_cells(block, q, bases, t, rows, columns, out):
    """Write what a step on the way back has for its cells; `block` collects steps that all lanes have cells for."""
    lanes = len(bases)
    place = (t + 1) % lanes  # blocks begin at the steps that `next_cells` reads them from
    if rows == lanes and lanes - 1 <= t - place and t - place + lanes <= columns:
        store(block, place * lanes, q)
        if place == 0:
            unpack_block(block, 0, out, bases, t)
    else:
        store(block, place * lanes, q)
        for lane in range(max(t - columns + 1, 0), min(rows - 1, t) + 1):
            out[bases[lane] + t] = block[place * lanes + lane]


@subroutine
def _back(n, m, stride, begin, chances, pitch, edge, line, lines, out):
    """Write the marginals, from the last band to the first; the halves of `edge` hold what enters from the row below."""
    lanes, half = len(line), len(edge) // 2
    bases, place, block, zero = lines[0], lines[1], lines[6], splat(chances, 0.0)
    for j in range(len(edge)):
        edge[j] = 0.0
    for first in range((n - 1) // lanes * lanes, -1, -lanes):
        rows, at = min(lanes, n - first), first // lanes * pitch
        enter(begin, stride, first, rows, bases, place)
        for lane in range(lanes):
            line[lane] = 1.0 if first + lane == n - 1 else 0.0
        left, above, corner, older = load(line, 0), zero, zero, zero
        for t in range(m + rows - 2, -1, -1):
            column = t - lanes + 1
            inside = rows == lanes and 0 <= column < m
            q = left + shift_down(above, edge[column] if inside else 0.0)
            q = q + shift_down(older, edge[half + column + 1] if inside else 0.0)
            now = at + 3 * lanes * t
            older, corner = corner, q * load(chances, now)
            above, left = q * load(chances, now + lanes), q * load(chances, now + 2 * lanes)
            if t < m:
                store(line, 0, above)
                edge[t] = line[0]
                store(line, 0, corner)
                edge[half + t] = line[0]
            put_cells(block, q, bases, t, rows, m, out)


@inner
def lines_for(scores):
    """The working memory of `upward`."""
    lanes, edge = lanes_in(scores), np.empty(scores.shape[2] + lanes_in(scores) + 2)
    return (
        np.empty(lanes, np.int64), aligned(lanes, scores), aligned(lanes, edge), edge, aligned(lanes, scores),
        np.empty(len(edge), scores.dtype), aligned(lanes * lanes, scores),
    )  # fmt: skip


@subroutine
def upward(flat, begin, stride, n, m, down, lines, chances, pitch, keep):
    """The log-partition of an example, and its largest score, +inf for NaN; if `keep`, chances of the moves into its cells.

    `lines` are bases, places and values of the lanes, the edge of a band, and room for a block of scores; see `lines_for`.
    """
    bases, place, last, edge, last_m, edge_m, _ = lines
    lanes, worst = len(bases), -np.inf
    edge_m[:] = 1.0
    _start(edge, NOTHING)
    for first in range(0, n, lanes):
        count, at = min(lanes, n - first), first // lanes * pitch if keep else 0
        enter(begin, stride, first, count, bases, place)
        worst = max(worst, _band(flat, stride, lines, count, m, down, chances, at, keep))
    m, k = last_m[(n - 1) % lanes], last[(n - 1) % lanes]
    return math.log(m) + k * math.log(2.0) if k > NOTHING / 2 else -np.inf, worst


@subroutine
def _draw(n, m, stride, begin, chances, pitch, lanes, seed, z):
    """From the last cell back to the first, by moves that are drawn."""
    i, j, drawn = n - 1, m - 1, 0
    while True:
        z[begin + i * stride + j] = 1.0
        if i == 0 and j == 0:
            return
        u, drawn = uniform(seed, drawn)
        at, move = i // lanes * pitch + 3 * lanes * (j + i % lanes) + i % lanes, 0
        for way in range(3):
            w = chances[at + way * lanes]
            if w > 0:
                move = way
                u -= w
                if u < 0:
                    break
        i -= move < 2
        j -= move != 1


@kernel
def sums(worker, workers, scores, rows, columns, down, mode, seeds, out, log_z, codes):
    """Write log-partitions and, by `mode`, marginals or samples, and zeros elsewhere.

    `down` says whether paths may move down. `codes[b]` is not zero where scores of an example hold NaN or +inf, or no path is
    feasible.
    """
    lanes, stride, keep = lanes_in(scores), scores.shape[2], mode != Mode.LOG_PARTITION
    size, flat, flat_out = scores.shape[1] * stride, scores.reshape(-1), out.reshape(-1)
    pitch, bands = 3 * lanes * (stride + lanes - 1), -(-scores.shape[1] // lanes)
    chances, line = aligned(pitch * bands if keep else lanes, scores), aligned(lanes, scores)
    other, lines = np.empty(2 * (stride + 2), scores.dtype), lines_for(scores)
    for b in range(worker, len(scores), workers):
        n, m, begin = rows[b], columns[b], b * size
        if keep:
            clear(flat_out, begin, begin + size)  # now, as what is written next is then in the cache
        if n == 0 or m == 0:
            log_z[b] = 0.0 if n == m else -np.inf
            codes[b] = n != m
            continue
        log_z[b], worst = upward(flat, begin, stride, n, m, down, lines, chances, pitch, keep)
        codes[b] = worst == np.inf or log_z[b] == -np.inf
        if codes[b]:
            continue
        if mode == Mode.MARGINALS:
            _back(n, m, stride, begin, chances, pitch, other, line, lines, flat_out)
        elif mode == Mode.SAMPLE:
            _draw(n, m, stride, begin, chances, pitch, lanes, seeds[b], flat_out)


@subroutine
def _follow(moves, pitch, lanes, n, m, stride, begin, z):
    """From the last cell back to the first; ties: the diagonal move first, then down, then right."""
    i, j = n - 1, m - 1
    while True:
        z[begin + i * stride + j] = 1.0
        if i == 0 and j == 0:
            return
        lane = i % lanes
        bits = moves[i // lanes * pitch + j + lane] >> lane
        from_left = bits >> 16 & 1
        from_above = bits & 1 & ~from_left
        i -= 1 - from_left
        j -= 1 - from_above


@kernel
def argmax(worker, workers, scores, rows, columns, down, z, best, codes):
    """Write the best paths and their scores; otherwise as `sums`."""
    lanes, stride = lanes_in(scores), scores.shape[2]
    size, flat, flat_z = scores.shape[1] * stride, scores.reshape(-1), z.reshape(-1)
    pitch, bands = stride + lanes - 1, -(-scores.shape[1] // lanes)
    edge, moves = np.empty(stride + lanes + 2), np.empty(pitch * bands, np.int32)
    last, bases, place = aligned(lanes, edge), np.empty(lanes, np.int64), aligned(lanes, scores)
    block = aligned(lanes * lanes, scores)
    for b in range(worker, len(scores), workers):
        n, m, begin, worst = rows[b], columns[b], b * size, -np.inf
        clear(flat_z, begin, begin + size)
        if n == 0 or m == 0:
            codes[b] = n != m
            best[b] = 0.0 if n == m else -np.inf
            continue
        _start(edge, -np.inf)
        for first in range(0, n, lanes):
            count, at = min(lanes, n - first), first // lanes * pitch
            enter(begin, stride, first, count, bases, place)
            worst = max(worst, _best_band(flat, stride, bases, place, block, count, m, down, edge, last, moves, at))
        best[b] = last[(n - 1) % lanes]
        codes[b] = worst == np.inf or best[b] == -np.inf
        if not codes[b]:
            _follow(moves, pitch, lanes, n, m, stride, begin, flat_z)
