"""Monotone alignments in Triton: one program per example and one launch, a cell of an anti-diagonal per lane.

A band of up to LANES rows is in lanes, each a column behind the lane of the row above: in step t, lane r is at column t - r.
The cell to the left is the same lane one step ago, the cell above the lane below one step ago, and the cell on the diagonal
that lane two steps ago. Bands pass on their last row in `edges`. Downwards, each cell passes its probability back by the
same moves. If there are fewer columns than rows, the caller swaps them.

Values are in float64, probabilities in the precision of the scores.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.engine.hypergraph.cuda_kernels import uniform
from pullback.inference.engine.hypergraph.cuda_maximum import fill

MAXIMUM, SAMPLE, SUM, LIKELIHOOD, SLOPE, SURPRISE = (constant(i) for i in range(6))
_LOWEST = constant(-1e300)


@jit(do_not_specialize=["batch", "rows", "columns", "down", "right"])
def sweep(
    scores, given, seeds, lengths, other_lengths, work, edges, out, value, batch, rows, columns, down, right,
    MODE: tl.constexpr, PARTS: tl.constexpr, BOTH: tl.constexpr, SWAPPED: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the value of each example, and with PARTS what its cells get; NaN where there is no path.

    | MODE | value | what cells get |
    |---|---|---|
    | MAXIMUM | score of the best path | 1 on that path |
    | SAMPLE | log Z | 1 on a path drawn |
    | SUM | log Z | probabilities |
    | LIKELIHOOD | log p(z) | its gradient |
    | SLOPE | derivative of log Z along a direction | that of the probabilities |
    | SURPRISE | entropy | its gradient |

    Args:
        scores: `[B, n, m]`, contiguous.
        given: likewise: the structures z, or a direction; otherwise anything.
        seeds: `[B]`, to SAMPLE; otherwise anything.
        lengths: the rows of each example, `[B]`.
        other_lengths: the columns, `[B]`.
        work: for each program, bands x (columns + LANES) x LANES x 1 int8 (MAXIMUM, SAMPLE), 3 numbers, or 6 (SLOPE, SURPRISE).
        edges: for each program, 2 x columns of float64.
        out: `[B, n, m]`, if there are PARTS.
        value: `[B]`.
        batch: B.
        rows: how many there are in an example at most.
        columns: likewise.
        down: from a cell to the one below, in memory.
        right: to the one to the right.
        MODE: what is wanted.
        PARTS: whether `out` is.
        BOTH: whether paths may move down, too, not only right and diagonally.
        SWAPPED: whether rows and columns are: right moves come before down moves in ties.
        LANES: a power of two.
    """
    program, cells = tl.program_id(0).to(tl.int64), rows.to(tl.int64) * columns
    down, right = down.to(tl.int64), right.to(tl.int64)
    hard: tl.constexpr = MODE <= SAMPLE
    each: tl.constexpr = 1 if hard else (6 if MODE >= SLOPE else 3)
    work += program * tl.cdiv(rows, LANES) * (columns + LANES) * LANES * each
    edges += program * 2 * columns
    for b in range(tl.program_id(0), batch, tl.num_programs(0)):
        n, m = tl.load(lengths + b), tl.load(other_lengths + b)
        sized = (n >= 0) & (n <= rows) & (m >= 0) & (m <= columns) & ((n == 0) == (m == 0))
        n, m = tl.where(sized, n, 0).to(tl.int32), tl.where(sized, m, 0).to(tl.int32)
        at = cells * b
        seed = tl.load(seeds + b) if MODE == SAMPLE else 0
        total, rate, bad = _upward(
            scores + at, given + at, seed, work, edges, n, m, columns, down, right, MODE, PARTS, BOTH, SWAPPED, LANES
        )
        fine = sized & (bad == 0) & (total > _LOWEST)
        result = rate if MODE >= SLOPE else total
        if PARTS:
            fill(out + at, cells, tl.where(fine, 0.0, float("nan")), 4 * LANES)
            tl.debug_barrier()
            if fine:
                score = _downward(scores + at, given + at, work, edges, out + at, n, m, columns, down, right, MODE, LANES)
                if MODE == LIKELIHOOD:
                    result = score - total
            tl.debug_barrier()
        tl.store(value + b, tl.where(fine, result, float("nan")).to(value.dtype.element_ty))


@jit()
def _cells(scores, cell, lane, t, n, m, right, other, LANES: tl.constexpr):
    """What a tensor holds for the cells of step t, `other` for lanes that are not at a cell."""
    column = t - tl.arange(0, LANES)
    inside = (lane < n) & (column >= 0) & (column < m)
    return tl.load(scores + (cell + right * t), inside, other).to(tl.float64)


@jit()
def _upward(
    scores, given, seed, work, edges, n, m, columns, down, right,
    MODE: tl.constexpr, PARTS: tl.constexpr, BOTH: tl.constexpr, SWAPPED: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The value of the last cell, its rate, and whether a score is NaN or +inf; `work` gets what `_downward` needs."""
    dtype: tl.constexpr = scores.dtype.element_ty
    place = tl.arange(0, LANES)
    before = tl.maximum(place - 1, 0)
    bad = tl.zeros([LANES], tl.int32)
    here = tl.full([LANES], 0.0, tl.float64)
    rate = tl.full([LANES], 0.0, tl.float64)
    step = tl.zeros([], tl.int64)
    for first in range(0, n, LANES):
        tl.debug_barrier()  # the edge of the band above is written
        lane = first + place
        cell = lane * down - place * right
        here = tl.full([LANES], -float("inf"), tl.float64)
        rate = tl.full([LANES], 0.0, tl.float64)
        corner = tl.where(lane == 0, 0.0, here)
        corner_rate = rate
        edge, edge_rate = _edge(edges, 0, m, columns, first, MODE)
        s = _cells(scores, cell, lane, 0, n, m, right, -float("inf"), LANES)
        next_s = _cells(scores, cell, lane, 1, n, m, right, -float("inf"), LANES)
        for t in range(0, m + tl.minimum(LANES, n - first) - 1):
            later_s = _cells(scores, cell, lane, t + 2, n, m, right, -float("inf"), LANES)
            next_edge, next_edge_rate = _edge(edges, t + 1, m, columns, first, MODE)
            wrong = (s != s) | (s == float("inf"))
            bad |= wrong.to(tl.int32)
            s = tl.where(wrong, -float("inf"), s)
            above = tl.where(place == 0, edge, tl.gather(here, before, 0))
            across = above if BOTH else tl.full([LANES], -float("inf"), tl.float64)
            best = tl.maximum(tl.maximum(corner, here), across)
            if MODE == MAXIMUM:
                if PARTS:
                    if SWAPPED:
                        move = tl.where(here >= across, 2, 1)
                    else:
                        move = tl.where(across >= here, 1, 2)
                    move = tl.where(corner >= tl.maximum(across, here), 0, move)
                    tl.store(work + step * LANES + place, move.to(tl.int8))
                found = best + s
            else:
                best = tl.maximum(best, _LOWEST)
                a = tl.exp((corner - best).to(dtype))
                b = tl.exp((across - best).to(dtype))
                c = tl.exp((here - best).to(dtype))
                total = a + b + c
                some = tl.where(total > 0, total, 1.0)
                nats = tl.log(some).to(tl.float64)
                found = tl.where(total > 0, best + s + nats, -float("inf"))
                if MODE == SAMPLE:
                    # Below the sum of all three, whatever rounding does: a move of weight zero is never drawn.
                    upto = a.to(tl.float64) + b.to(tl.float64)
                    u = uniform(seed, cell + right * t) * (upto + c.to(tl.float64))
                    move = tl.where(u < a.to(tl.float64), 0, tl.where(u < upto, 1, 2))
                    tl.store(work + step * LANES + place, move.to(tl.int8))
                elif PARTS or MODE >= SLOPE:
                    inverse = 1.0 / some
                    a, b, c = a * inverse, b * inverse, c * inverse
                    if PARTS:
                        each: tl.constexpr = 6 if MODE >= SLOPE else 3
                        to = work + step * (each * LANES) + place
                        tl.store(to, a)
                        tl.store(to + LANES, b)
                        tl.store(to + 2 * LANES, c)
                if MODE >= SLOPE:
                    above_rate = tl.where(place == 0, edge_rate, tl.gather(rate, before, 0))
                    da, db, dc = corner_rate, above_rate, rate
                    if MODE == SURPRISE:
                        da += nats - (corner - best)
                        db += nats - (across - best)
                        dc += nats - (here - best)
                    whole = a.to(tl.float64) + b.to(tl.float64) + c.to(tl.float64)  # not quite 1: rates grow along a path
                    mean = (_times(a, da) + _times(b, db) + _times(c, dc)) / tl.where(whole > 0, whole, 1.0)
                    if PARTS:
                        tl.store(to + 3 * LANES, _times(a, da - mean).to(dtype))
                        tl.store(to + 4 * LANES, _times(b, db - mean).to(dtype))
                        tl.store(to + 5 * LANES, _times(c, dc - mean).to(dtype))
                    corner_rate, rate = above_rate, mean
                    if MODE == SLOPE:
                        rate += _cells(given, cell, lane, t, n, m, right, 0.0, LANES)
            corner, here = above, found
            column = place + (t - 2 * (LANES - 1))
            passed = (place == LANES - 1) & (column >= 0) & (lane < n - 1)
            tl.store(edges + column, here, passed)
            if MODE >= SLOPE:
                tl.store(edges + columns + column, rate, passed)
            s, next_s, edge, edge_rate = next_s, later_s, next_edge, next_edge_rate
            step += 1
    last = place == (tl.maximum(n, 1) - 1) % LANES
    return tl.sum(tl.where(last, here, 0.0), 0), tl.sum(tl.where(last, rate, 0.0), 0), tl.max(bad, 0)


@jit()
def _edge(edges, t, m, columns, first, MODE: tl.constexpr):
    """Value and rate of the cell above lane 0 in step t: the last row of the band above."""
    inside = (first + tl.zeros([], tl.int32) > 0) & (t < m)
    rate = 0.0
    if MODE >= SLOPE:
        rate = tl.load(edges + columns + t, inside, 0.0)
    return tl.load(edges + t, inside, -float("inf")), rate


@jit()
def _times(weight, x):
    """Weights times numbers that may be infinite where the weight is zero."""
    return tl.where(weight > 0, weight.to(tl.float64) * x, 0.0)


@jit()
def _moves(work, step, MODE: tl.constexpr, LANES: tl.constexpr):
    """The chances of the three moves into each lane's cell, and their derivatives."""
    place = tl.arange(0, LANES)
    if MODE <= SAMPLE:
        move = tl.load(work + step * LANES + place)
        a, b, c = (move == 0).to(tl.float32), (move == 1).to(tl.float32), (move == 2).to(tl.float32)
    else:
        each: tl.constexpr = 6 if MODE >= SLOPE else 3
        at = work + step * (each * LANES) + place
        a, b, c = tl.load(at), tl.load(at + LANES), tl.load(at + 2 * LANES)
    da, db, dc = a, b, c
    if MODE >= SLOPE:
        da, db, dc = tl.load(at + 3 * LANES), tl.load(at + 4 * LANES), tl.load(at + 5 * LANES)
    return a, b, c, da, db, dc


@jit()
def _downward(scores, given, work, edges, out, n, m, columns, down, right, MODE: tl.constexpr, LANES: tl.constexpr):
    """Write what the cells get, from the last to the first; returns the score of the structure given."""
    dtype: tl.constexpr = tl.float32 if MODE <= SAMPLE else work.dtype.element_ty
    place = tl.arange(0, LANES)
    after = tl.minimum(place + 1, LANES - 1)
    score = tl.zeros([LANES], tl.float64)
    nothing = tl.zeros([LANES], dtype)
    bands = tl.cdiv(n, LANES)
    step = (bands - 1).to(tl.int64) * (m + LANES - 1) + (m + n - (bands - 1) * LANES - 1)
    for back in range(0, bands):
        tl.debug_barrier()  # the edge of the band below is written
        first = (bands - 1 - back) * LANES
        lane = first + place
        cell = lane * down - place * right
        steps = m + tl.minimum(LANES, n - first) - 1
        stayed = (lane == n - 1).to(dtype)
        up, corner, moved, moved_up, moved_corner = nothing, nothing, nothing, nothing, nothing
        now = _moves(work, step - 1, MODE, LANES)
        soon = _moves(work, tl.maximum(step - 2, 0), MODE, LANES)  # memory is read three steps ahead
        later = _moves(work, tl.maximum(step - 3, 0), MODE, LANES)
        for reverse in range(0, steps):
            t = steps - 1 - reverse
            step -= 1
            a, b, c, da, db, dc = now
            last = _moves(work, tl.maximum(step - 3, 0), MODE, LANES)
            column = t - place
            inside = (lane < n) & (column >= 0) & (column < m)
            at = cell + right * t
            if MODE == LIKELIHOOD:
                z = tl.load(given + at, inside, 0.0)
                s = tl.load(scores + at, inside & (z != 0.0), 0.0)
            below = (place == LANES - 1) & inside & (lane < n - 1)
            q = stayed + tl.where(place < LANES - 1, tl.gather(up, after, 0), tl.load(edges + column, below, 0.0).to(dtype))
            found = q
            if MODE >= SLOPE:
                edge = tl.load(edges + columns + column, below, 0.0).to(dtype)
                found = moved + tl.where(place < LANES - 1, tl.gather(moved_up, after, 0), edge)
                # what no path reaches has no derivative, though rates there may be infinite
                moved_up = tl.where(q > 0, found * b + q * db, 0.0) + moved_corner
                moved_corner = tl.where(q > 0, found * a + q * da, 0.0)
                moved = tl.where(q > 0, found * c + q * dc, 0.0)
                tl.store(edges + columns + (place + t), moved_up.to(tl.float64), (place == 0) & (lane > 0) & inside)
            up = q * b + corner
            corner, stayed = q * a, q * c
            tl.store(edges + (place + t), up.to(tl.float64), (place == 0) & (lane > 0) & inside)
            if MODE == LIKELIHOOD:
                score += s.to(tl.float64) * z.to(tl.float64)
                found = z - found
            tl.store(out + at, found.to(out.dtype.element_ty), inside)
            now, soon, later = soon, later, last
    return tl.sum(score, 0)
