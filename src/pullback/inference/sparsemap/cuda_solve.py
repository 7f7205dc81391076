"""SparseMAP of dependency trees on a GPU: one program a sentence, from its scores to its active set, in Triton."""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import fill, length_of, load_scores
from pullback.inference.sparsemap.cuda_active_set import mix
from pullback.inference.sparsemap.cuda_search import ANY, FULL, search
from pullback.inference.sparsemap.cuda_starts import copy_usable
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["chart", "batch", "n", "capacity", "starts", "limit", "multiroot", "again"])
def solve(
    scores, lengths, start_heads, start_weights, mu, heads, weights, sizes, gaps, calls, states,
    inverses, matrices, all_columns, trees, ends, splits, roughly, charts, chart,
    batch, n, capacity, starts, limit, multiroot, again,
    COMPLETE: tl.constexpr, ORACLE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LEVELS: tl.constexpr,
    POSITIONS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Project `[B, n, n]` scores onto the convex hull of the trees.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        start_heads: `[B, starts, n]`, int16, trees to start from.
        start_weights: `[B, starts]`, float64.
        mu: `[B, n, n]`, to write.
        heads: `[B, capacity, n]`, int16, to write: the active trees.
        weights: `[B, capacity]`, float64, to write.
        sizes: `[B]`, int32, to write: how many are active.
        gaps: `[B]`, float64, to write.
        calls: `[B]`, int32, to write: how often the oracle was called.
        states: `[B]`, int32, to write: how the search ended.
        inverses: scratch, CAPACITY (CAPACITY + 5 + PENDING) of float64 a program.
        matrices: scratch, 3 n^2 of float64 a program.
        all_columns: scratch, n CAPACITY of int16 a program.
        trees: scratch, n of int16 a program: the tree that the oracle found.
        ends: scratch of the oracle, 2 (n + 1) of int32 a program.
        splits: scratch of the oracle, 3 (n + 1)^2 of int16 a program.
        roughly: scratch of a rough oracle, n^2 + `chart` of float32 a program.
        charts: scratch of the oracle, `chart` of float64 a program.
        chart: how much it needs.
        batch: B.
        n: the size of the scores.
        capacity: the most trees.
        starts: how many trees there are to start from.
        limit: how many calls of the oracle are enough.
        multiroot: whether several words may attach to the root.
        again: not 0 to go on with the sentences that were FULL, from their active sets; the others are left alone.
        COMPLETE: whether to add trees at the end until they span the face that mu lies in.
        ORACLE: ANY, SHORT or LONG.
        ROWS: heads looked at together.
        COLUMNS: words looked at together, a power of two, at least n.
        LEVELS: its logarithm.
        POSITIONS: a power of two, more than n.
        CAPACITY: the most trees that fit into the inverse, a power of two.
        PENDING: how many changes of the inverse come together, a power of two.
    """
    program = tl.program_id(0).to(tl.int64)
    inverse = inverses + program * CAPACITY * (CAPACITY + 5 + PENDING)
    columns = all_columns + program * n * CAPACITY
    shifted = matrices + program * 3 * n * n
    roughly += program * (n * n + chart)
    charts += program * chart
    splits += program * 3 * (n + 1) * (n + 1)
    ends += program * 2 * (n + 1)
    trees += program * n
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        b = tl.cast(sentence, tl.int64)
        if (again == 0) | (tl.load(states + b) == FULL):
            length = length_of(lengths, sentence, n)
            own_heads, own_weights = heads + b * capacity * n, weights + b * capacity
            fill(mu + b * n * n, n * n, 0.0, 1024)
            size, count = 0, 0
            if again:
                size, count = tl.load(sizes + b), tl.load(calls + b)
            else:
                most = tl.minimum(starts, tl.minimum(capacity, CAPACITY))
                size = copy_usable(
                    scores + b * n * n, start_heads + b * starts * n, start_weights + b * starts, most,
                    own_heads, own_weights, length, n, multiroot, ORACLE != ANY, ROWS, COLUMNS, LEVELS,
                )  # fmt: skip
            tl.debug_barrier()
            garbled = _shift(
                scores + b * n * n, length, n, own_heads, own_weights, size, shifted, mu + b * n * n, ROWS, COLUMNS
            )  # fmt: skip
            tl.debug_barrier()
            size, gap, count, state = search(
                shifted, mu + b * n * n, own_heads, own_weights, size, count, garbled, inverse, columns,
                roughly, charts, splits, ends, trees, length, n, capacity, limit, multiroot,
                COMPLETE, ORACLE, ROWS, COLUMNS, LEVELS, POSITIONS, CAPACITY, PENDING,
            )  # fmt: skip
            tl.store(sizes + b, size)
            tl.store(gaps + b, gap)
            tl.store(calls + b, count)
            tl.store(states + b, state)
            tl.debug_barrier()


@jit()
def _shift(scores, length, n, heads, weights, size, shifted, mu, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Write the scores shifted so that s - mu has a largest entry of zero for each word, with mu the mean at the start.

    That changes no projection, and near a solution s - mu is small then: after a small step from a tree it differs by as
    much as the step is long, which a rough oracle has to see. If there is NaN or +inf, NaN is written to mu.

    Returns:
        1 if there is, else 0.
    """
    word = tl.arange(0, COLUMNS)[None, :]
    total = tl.full([], 0.0, tl.float64)
    for i in range(0, size):
        total += tl.load(weights + i)
    scale = 1.0 / tl.where(size > 0, total, 1.0)
    top = tl.full([COLUMNS], float("-inf"), tl.float64)
    worst = tl.zeros([COLUMNS], tl.int32)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        score, _, garbled = load_scores(scores, head, word, length, n)
        slack = score.to(tl.float64) - scale * mix(heads, weights, size, head, length, n, ROWS, COLUMNS)
        top = tl.maximum(top, tl.max(slack, 0))
        worst = tl.maximum(worst, tl.max(garbled.to(tl.int32), 0))
    top = tl.where(top > float("-inf"), top, 0.0)
    garbled = tl.max(worst, 0)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        score, real, _ = load_scores(scores, head, word, length, n)
        tl.store(shifted + head * n + word, score.to(tl.float64) - top[None, :], mask=real)
        nan = tl.full([ROWS, COLUMNS], float("nan"), tl.float64).to(mu.dtype.element_ty)
        tl.store(mu + head * n + word, nan, mask=real & (garbled > 0))
    return garbled
