"""The active-set method on the trees of one sentence, as part of a GPU program, in Triton. See README.md.

A search takes turns, each of which begins with the mean of the active trees:

    search     ask the oracle for a tree that improves on it; add it, and move the weights to the minimum on the hull
    build      build the inverse of the Gram matrix anew, leaving out trees that depend on others
    move       move the weights to the minimum on the hull, from wherever they are
    complete   at the end, add trees of weight zero until the active set spans the face that mu lies in
"""

from __future__ import annotations

from pullback.inference.chu_liu_edmonds.cuda_contraction import best_heads
from pullback.inference.sparsemap import cuda_long, cuda_short
from pullback.inference.sparsemap.cuda_active_set import add_both, extend, multiply, slopes
from pullback.inference.sparsemap.cuda_face import tilt
from pullback.inference.sparsemap.cuda_weights import mean, settle
from pullback.inference.triton_support import constant, jit, tl

_SEARCH, _BUILD, _MOVE, _COMPLETE = constant(0), constant(1), constant(2), constant(3)
CONVERGED, STOPPED, FULL, INFEASIBLE, GARBLED = constant(0), constant(1), constant(2), constant(3), constant(4)
"""How a search ends: at the optimum, at its limit, without room for another tree, without a tree, with NaN."""
_MANY = constant(4)  # trees a word: larger faces of projective trees may have dimensions that the search has not found
ANY, SHORT, LONG = constant(0), constant(1), constant(2)
"""The oracle: for all trees, or for the projective ones of short and of long sentences."""


@jit()
def search(
    shifted, mu, heads, weights, size, count, garbled, inverse, columns, roughly, charts, splits, ends, found,
    length, n, capacity, limit, multiroot,
    COMPLETE: tl.constexpr, ORACLE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
    POSITIONS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Solve for one sentence. The arguments are those of `cuda_solve.solve`, for this one.

    Args:
        shifted: the scores, shifted for each word; behind them room for s - mu, and that tilted.
        mu: to write.
        heads: to write; the first `size` are there already.
        weights: to write, likewise.
        size: how many trees there are to start from.
        count: of calls of the oracle so far.
        garbled: whether there is nothing to do.
        inverse: scratch.
        columns: scratch: the trees of `heads`, `[n, CAPACITY]`.
        roughly: scratch: s - mu in float32, behind it charts of a rough oracle.
        charts: scratch.
        splits: scratch.
        ends: scratch.
        found: scratch, `[n]`: the tree that the oracle found.
        length: the number of words.
        n: the pitch.
        capacity: the most trees there can be.
        limit: how many calls of the oracle are enough.
        multiroot: whether several words may attach to the root.
        COMPLETE: whether to add trees at the end until they span the face that mu lies in.
        ORACLE: ANY, SHORT or LONG.
        ROWS: heads looked at together.
        COLUMNS: words looked at together.
        LEVELS: its logarithm.
        POSITIONS: words and the root.
        CAPACITY: of the inverse.
        PENDING: how many of its changes come together.

    Returns:
        The size of the active set, the gap, the number of calls, and how the search ended.
    """
    tree = tl.arange(0, CAPACITY)
    residual, line = shifted + n * n, inverse + CAPACITY * CAPACITY
    share = tl.load(weights + tree, mask=tree < size, other=0.0)
    share = share / tl.where(size > 0, tl.sum(share, 0), 1.0)
    sums = tl.zeros([CAPACITY], tl.float64)
    gap = tl.full([], 0.0, tl.float64)
    rounding = gap
    state = tl.where(garbled > 0, GARBLED, CONVERGED)
    turn = tl.where(size > 0, _BUILD, _SEARCH)
    moves, pending, changes, stalls, attempt, failed = 0, 0, 0, 0, 0, 0
    rough = 0 if ORACLE == ANY else 1  # a rough oracle is faster, and finds almost all of the active set
    going = tl.where(garbled > 0, 0, length)
    while going > 0:
        tl.store(weights + tree, share, mask=tree < size)
        tl.debug_barrier()
        own, scale = mean(shifted, residual, roughly, mu, heads, weights, size, length, n, ORACLE != ANY, ROWS, COLUMNS)
        tl.debug_barrier()
        first, behind = tl.where(turn == _BUILD, 0, size), size
        close, optimal = 0, 0
        if (turn == _SEARCH) | (turn == _COMPLETE):
            slack = tl.maximum(100 * rounding, 4 * gap)  # by how much less than mu trees of its face may seem to gain
            exists, lead, noise = _ask(
                residual, mu, heads, inverse, pending, columns, sums, found, roughly, charts, splits, ends, size, turn,
                attempt, slack, rough, length, n, multiroot,
                COMPLETE, ORACLE, ROWS, COLUMNS, LEVELS, POSITIONS, CAPACITY,
            )  # fmt: skip
            count += 1
            lead = tl.where(size > 0, lead - own, 0.0)
            room = (size < capacity) & (size < CAPACITY)
            if turn == _SEARCH:
                rounding = noise + 8.881784197001252e-16 * scale  # 4 units in the last place
                close = tl.where((size > 0) & (lead <= 1e4 * rounding), 1, 0)
                stalls += tl.where((close > 0) & (lead > 0.5 * gap), 1, 0)
                patience = tl.where(lead <= 100 * rounding, 5, 50)
                gap = lead
                optimal = tl.where((close > 0) & (rough == 0) & ((gap <= rounding) | (stalls > patience)), 1, 0)
                late = (size > 0) & (count >= limit)
                none = (exists == 0) & (rough == 0)  # scores may leave the range of a rough oracle
                state = tl.where(none, INFEASIBLE, tl.where(late, STOPPED, FULL))
                going = tl.where((state == FULL) & (size < CAPACITY) & (optimal == 0), 1, 0)
                behind = size + tl.where(room & (exists > 0) & (rough * close == 0), going, 0)
            else:
                behind = size + tl.where((exists > 0) & (lead > -slack) & room, 1, 0)
        kept, pending, share, sums, entry = _add(
            heads, inverse, pending, columns, first, behind, turn, found, share, sums, length, n,
            COLUMNS, CAPACITY, PENDING,
        )  # fmt: skip
        if turn == _BUILD:
            share = share / tl.sum(share, 0)
            size, changes, moves, turn = kept, 0, 3, _MOVE
        elif turn == _COMPLETE:
            failed = tl.where(kept > size, 0, failed + 1)
            attempt += tl.where(kept > size, 2 - attempt % 2, 1)  # after a success, a new direction
            size = kept
            full = (size == CAPACITY) & (size < capacity)
            state = tl.where(full, FULL, state)
            going = tl.where((failed < 2) & (full == 0), 1, 0)
        elif (turn == _SEARCH) & (kept == size):
            # Without rounding the gap of a tree that depends on the active ones would be zero, as theirs is.
            if (going > 0) & (rough == 0):
                turn = _BUILD
                if changes == 0:
                    going, optimal, state = 0, close, STOPPED
            rough = 0
        else:
            changes += kept - size
            drive = gap * entry
            if turn == _MOVE:
                tl.store(line + tree, slopes(columns, residual, size, length, n, CAPACITY), mask=tree < size)
                tl.debug_barrier()
                drive = multiply(inverse, pending, size, CAPACITY)
                tl.debug_barrier()
            size = kept
            if close == 0:
                pending, size, share, sums = settle(
                    inverse, pending, heads, columns, kept, share, sums, drive, n, COLUMNS, CAPACITY, PENDING
                )  # fmt: skip
            changes += kept - size
            moves = tl.where(close > 0, 3, moves - 1)
            turn = tl.where(moves > 0, _MOVE, tl.where(changes > 64 + 4 * size, _BUILD, _SEARCH))
        if optimal > 0:
            state = CONVERGED
            if COMPLETE:
                partial = (gap > rounding) | (size > _MANY * length) | (ORACLE == ANY)
                going, turn = tl.where(partial, 1, 0), _COMPLETE
    size = tl.where(length == 0, 1, size)
    share = tl.where(length == 0, tl.where(tree == 0, 1.0, 0.0), share)
    word = tl.arange(0, COLUMNS)
    tl.store(heads + word, tl.full([COLUMNS], -1, tl.int16), mask=(word < n) & (length == 0))
    tl.store(weights + tree, share, mask=tree < size)
    return size, gap, count, state


@jit()
def _ask(
    residual, mu, heads, inverse, pending, columns, sums, found, roughly, charts, splits, ends, size, turn,
    attempt, slack, rough, length, n, multiroot,
    COMPLETE: tl.constexpr, ORACLE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
    POSITIONS: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Ask the oracle for the best tree z, for s - mu or, to complete the active set, for that tilted.

    Returns:
        Whether there is one, which `found` holds then; <s - mu, z>; and how much of that may be rounding.
    """
    word = tl.arange(0, COLUMNS)
    seen = residual
    if COMPLETE:  # noqa: SIM102 - a constant: nothing of this is compiled without it
        if turn == _COMPLETE:
            seen = residual + n * n
            tilt(
                residual, mu, seen, heads, inverse, pending, columns, sums, size, attempt, 100 * slack, length, n,
                ROWS, COLUMNS, CAPACITY,
            )  # fmt: skip
    if ORACLE == ANY:
        new, exists = best_heads(seen, length, n, multiroot, splits, charts, ROWS, COLUMNS, LEVELS)
        tl.store(found + word, tl.where(word < length, new, -1).to(tl.int16), mask=word < n)
    elif ORACLE == LONG:
        if rough > 0:
            exists = cuda_long.best_tree(
                roughly, length, n, multiroot, found, splits, roughly + n * n, ends, 16, POSITIONS
            )  # fmt: skip
        else:
            exists = cuda_long.best_tree(seen, length, n, multiroot, found, splits, charts, ends, 16, POSITIONS)
    elif rough > 0:
        exists = cuda_short.best_tree(roughly, length, n, multiroot, found, splits, ends, POSITIONS)
    else:
        exists = cuda_short.best_tree(seen, length, n, multiroot, found, splits, ends, POSITIONS)
    tl.debug_barrier()
    new = tl.load(found + word, mask=(word < length) & (exists > 0), other=-1).to(tl.int32)
    real = (word < length) & (exists > 0)
    slack = tl.load(residual + new * n + word, mask=real, other=0.0)
    lead, size_of_it = tl.reduce((slack, tl.abs(slack)), 0, add_both)
    tl.debug_barrier()
    return exists, lead, 8.881784197001252e-16 * (length + size_of_it)


@jit()
def _add(
    heads, inverse, pending, columns, first, behind, turn, found, share, sums, length, n,
    COLUMNS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Add the tree that was found, with weight 0 unless it is the first; or add all trees anew, to build the inverse.

    Returns:
        How many trees there are now, how many changes of the inverse are pending, the trees' weights, the sums of the
        inverse's rows, and its last row.
    """
    tree = tl.arange(0, CAPACITY)
    entry = tl.zeros([CAPACITY], tl.float64)
    if turn == _BUILD:
        sums, pending = entry, 0
    kept = first
    for i in range(first, behind):
        new = found
        if turn == _BUILD:
            new = heads + i * n
        independent, pending, sums, entry = extend(
            inverse, pending, heads, columns, new, kept, sums, length, n, COLUMNS, CAPACITY, PENDING
        )  # fmt: skip
        weight = tl.where(behind == 1, 1.0, tl.sum(tl.where(tree == i, share, 0.0), 0))
        share = tl.where(tree == i, 0.0, share)
        share = tl.where((tree == kept) & (independent > 0), weight, share)
        kept += independent
    return kept, pending, share, sums, entry
