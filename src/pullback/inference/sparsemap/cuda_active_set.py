"""The linear algebra of an active set of trees on a GPU, in Triton: the inverse of its Gram matrix, kept up to date.

M stands for the inverse, of which the first `size` rows and columns are in use. A change of the active set adds a multiple of
a vector's square to it. The last few such changes are pending: M is a matrix `[CAPACITY, CAPACITY]` of float64 in memory plus
scale_c v_c v_c^T for each pending c, and only when PENDING of them have come together are they added to the matrix, which is
far slower to write than to read. Behind the matrix follow lines `[CAPACITY]`: four for vectors on their way between threads,
one for the scales, and the v_c.

What is kept of each tree, a vector `[CAPACITY]`, stays in registers: its weight, the sum of its row of M, and the drive: M
times the slopes e_i = <s - mu, a_i>. The step to the minimum on the affine hull is the drive, less the multiple of the sums
that makes it add up to zero.

A thread owns columns of M, and loops over rows and over words: little is exchanged between threads but vectors. For that the
trees are kept twice, as `heads [tree, word]` and as `columns [word, tree]`.
"""

from __future__ import annotations

from pullback.inference.triton_support import constant, jit, tl

LINES = 5  # behind the matrix, before the pending vectors
_DEPENDENT = constant(1e-4)  # as active_set.py has it
_AHEAD = constant(8)  # how many loads are on the way at a time


@jit()
def extend(
    inverse, pending, heads, columns, new, size, sums, length, n,
    COLUMNS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Make a tree active, if it is affinely independent of the active ones.

    Args:
        inverse: the matrix of M.
        pending: how many changes are.
        heads: `[>= size + 1, n]`, int16: the active trees.
        columns: `[n, CAPACITY]`, int16: the same.
        new: `[n]`, int16, the tree, -1 for padding; it may be one of the heads, from the place that it gets on.
        size: how many are active.
        sums: of the rows of M, `[CAPACITY]`, zero behind the active ones.
        length: the number of words.
        n: the pitch of the heads.
        COLUMNS: a power of two, at least n.
        CAPACITY: the pitch of M, a power of two.
        PENDING: when so many changes are pending, they are made.

    Returns:
        1 or 0; how many changes are pending now; the new sums; and the new row of M, zero behind it.
    """
    word, tree = tl.arange(0, COLUMNS), tl.arange(0, CAPACITY)
    line = inverse + CAPACITY * CAPACITY
    its_heads = tl.load(new + word, mask=word < n, other=-1)
    shared = _shared(columns, new, size, length, CAPACITY).to(tl.float64)
    tl.store(line + tree, shared, mask=tree < size)
    tl.debug_barrier()
    ratio = multiply(inverse, pending, size, CAPACITY)
    product, total = tl.reduce((shared * ratio, ratio), 0, add_both)
    distance = length - product
    independent = tl.where(distance > _DEPENDENT, 1, 0)
    scale = 1.0 / tl.where(independent > 0, distance, 1.0)
    entry = tl.where(tree == size, scale, -scale * ratio)
    if independent > 0:
        nothing = tl.zeros([CAPACITY], tl.float64)
        tl.store(inverse + size * CAPACITY + tree, nothing, mask=tree <= size)
        tl.store(inverse + tree * CAPACITY + size, nothing, mask=tree < size)
        tl.store(heads + size * n + word, its_heads, mask=word < n)
        tl.store(columns + word * CAPACITY + size, its_heads, mask=word < n)
        sums += (1.0 - total) * entry
        pending = _change(inverse, pending, tl.where(tree == size, -1.0, ratio), scale, size + 1, CAPACITY, PENDING)
    tl.debug_barrier()
    return independent, pending, sums, entry


@jit()
def remove(
    inverse, pending, heads, columns, index, size, share, sums, drive, n,
    COLUMNS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Take a tree out; the last one takes its place.

    Returns:
        How many changes are pending now, and the weights, the sums and the drive of what is left.
    """
    word, tree = tl.arange(0, COLUMNS), tl.arange(0, CAPACITY)
    change = tl.arange(0, PENDING) * CAPACITY
    line, changes = inverse + CAPACITY * CAPACITY, inverse + CAPACITY * (CAPACITY + 5)
    last = size - 1
    row = _row(inverse, pending, index, size, CAPACITY)
    tl.store(line + tree, row, mask=tree < size)
    tl.store(line + CAPACITY + tree, share, mask=tree < size)
    tl.store(line + 2 * CAPACITY + tree, sums, mask=tree < size)
    tl.store(line + 3 * CAPACITY + tree, drive, mask=tree < size)
    moved = tl.load(inverse + last * CAPACITY + tree, mask=tree < size, other=0.0)
    corner = tl.load(inverse + last * (CAPACITY + 1))
    waiting = change < pending * CAPACITY
    moved_changes = tl.load(changes + change + last, mask=waiting, other=0.0)
    last_heads = tl.load(heads + last * n + word, mask=word < n, other=-1)
    tl.debug_barrier()
    diagonal, shared, weight = tl.load(line + index), tl.load(line + last), tl.load(line + CAPACITY + last)
    share = tl.where(tree == index, weight, share)
    sums = _without(sums, line + 2 * CAPACITY, row, shared, diagonal, index, last, CAPACITY)
    drive = _without(drive, line + 3 * CAPACITY, row, shared, diagonal, index, last, CAPACITY)
    moved = tl.where(tree == index, corner, moved)
    tl.store(inverse + index * CAPACITY + tree, moved, mask=tree < last)
    tl.store(inverse + tree * CAPACITY + index, moved, mask=tree < last)
    tl.store(changes + change + index, moved_changes, mask=waiting)
    tl.store(changes + change + last, tl.zeros([PENDING], tl.float64), mask=waiting)
    tl.store(heads + index * n + word, last_heads, mask=word < n)
    tl.store(columns + word * CAPACITY + index, last_heads, mask=word < n)
    row = tl.where(tree == index, shared, row)
    pending = _change(inverse, pending, row, -1.0 / diagonal, last, CAPACITY, PENDING)
    tl.debug_barrier()
    return pending, tl.where(tree == last, 0.0, share), sums, drive


@jit()
def _without(vector, line, row, shared, diagonal, index, last, CAPACITY: tl.constexpr):
    """M times something, which `line` holds too, after a tree was removed whose row of M is given."""
    tree = tl.arange(0, CAPACITY)
    ratio = tl.load(line + index) / diagonal
    vector = tl.where(tree == index, tl.load(line + last) - ratio * shared, vector - ratio * row)
    return tl.where(tree == last, 0.0, vector)


@jit()
def step_of(drive, sums):
    """The step of the weights: the drive, less a multiple of the sums, so that it adds up to zero."""
    excess, total = tl.reduce((drive, sums), 0, add_both)
    return drive - excess / tl.where(total > 0.0, total, 1.0) * sums


@jit()
def add_both(a, b, other_a, other_b):
    """How to reduce pairs to their sums."""
    return a + other_a, b + other_b


@jit()
def multiply(inverse, pending, size, CAPACITY: tl.constexpr):
    """M times the vector in the first line."""
    tree = tl.arange(0, CAPACITY)
    line, scales = inverse + CAPACITY * CAPACITY, inverse + CAPACITY * (CAPACITY + 4)
    total = tl.zeros([CAPACITY], tl.float64)
    for start in range(0, size, _AHEAD):
        for offset in tl.static_range(_AHEAD):
            i = start + offset
            factor = tl.load(line + i, mask=i < size, other=0.0)
            total += factor * tl.load(inverse + i * CAPACITY + tree, mask=(i < size) & (tree < size), other=0.0)
    vector = tl.load(line + tree, mask=tree < size, other=0.0)
    for c in range(0, pending):
        change = tl.load(scales + (c + 1) * CAPACITY + tree, mask=tree < size, other=0.0)
        total += tl.load(scales + c) * tl.sum(change * vector, 0) * change
    return total


@jit()
def _row(inverse, pending, index, size, CAPACITY: tl.constexpr):
    """A row of M."""
    tree = tl.arange(0, CAPACITY)
    scales = inverse + CAPACITY * (CAPACITY + 4)
    row = tl.load(inverse + index * CAPACITY + tree, mask=tree < size, other=0.0)
    for c in range(0, pending):
        change = scales + (c + 1) * CAPACITY
        row += tl.load(scales + c) * tl.load(change + index) * tl.load(change + tree, mask=tree < size, other=0.0)
    return row


@jit()
def _change(inverse, pending, vector, scale, size, CAPACITY: tl.constexpr, PENDING: tl.constexpr):
    """Add a multiple of a vector's square to M; returns how many changes are pending then."""
    tree = tl.arange(0, CAPACITY)
    scales = inverse + CAPACITY * (CAPACITY + 4)
    # zero behind the active ones, where a tree may be added while this is pending
    tl.store(scales + (pending + 1) * CAPACITY + tree, tl.where(tree < size, vector, 0.0))
    tl.store(scales + pending, scale)
    pending += 1
    if pending == PENDING:
        tl.debug_barrier()
        _make_changes(inverse, size, CAPACITY, PENDING)
        pending = 0
    return pending


@jit()
def _make_changes(inverse, size, CAPACITY: tl.constexpr, PENDING: tl.constexpr):
    """Add what is pending to the matrix."""
    tree = tl.arange(0, CAPACITY)
    scales = inverse + CAPACITY * (CAPACITY + 4)
    rows: tl.constexpr = max(2048 // CAPACITY, 1)
    for start in range(0, size, rows):
        row = start + tl.arange(0, rows)
        used = (row < size)[:, None] & (tree < size)[None, :]
        at = inverse + row[:, None] * CAPACITY + tree[None, :]
        total = tl.load(at, mask=used, other=0.0)
        for c in range(0, PENDING):
            change = scales + (c + 1) * CAPACITY
            factor = tl.load(scales + c) * tl.load(change + row, mask=row < size, other=0.0)
            total += factor[:, None] * tl.load(change + tree, mask=tree < size, other=0.0)[None, :]
        tl.store(at, total, mask=used)


@jit()
def _shared(columns, new, size, length, CAPACITY: tl.constexpr):
    """How many arcs each active tree shares with another."""
    tree = tl.arange(0, CAPACITY)
    count = tl.zeros([CAPACITY], tl.int32)
    for start in range(0, length, _AHEAD):
        for offset in tl.static_range(_AHEAD):
            m = start + offset
            its_head = tl.load(new + m, mask=m < length, other=-1)
            head = tl.load(columns + m * CAPACITY + tree, mask=(m < length) & (tree < size), other=-2)
            count += (head == its_head).to(tl.int32)
    return count


@jit()
def slopes(columns, parts, size, length, n, CAPACITY: tl.constexpr):
    """<v, a_i - a_0> for each tree a_i, with v the parts `[n, n]`."""
    tree = tl.arange(0, CAPACITY)
    total = tl.zeros([CAPACITY], tl.float64)
    for start in range(0, length, _AHEAD):
        for offset in tl.static_range(_AHEAD):
            m = start + offset
            used = (m < length) & (tree < size)
            first = tl.load(columns + m * CAPACITY, mask=(m < length) & (size > 0), other=0).to(tl.int32)
            head = tl.load(columns + m * CAPACITY + tree, mask=used, other=0).to(tl.int32)
            level = tl.load(parts + first * n + m, mask=(m < length) & (size > 0), other=0.0).to(tl.float64)
            total += tl.load(parts + head * n + m, mask=used, other=0.0).to(tl.float64) - tl.where(used, level, 0.0)
    return total


@jit()
def mix(trees, weights, size, head, length, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The weighted sum of the trees at a tile of arcs: from the heads `[ROWS, 1]` to all words."""
    word = tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    for start in range(0, size, 4):
        for offset in tl.static_range(4):  # so that four loads are on the way at a time
            i = start + offset
            its_head = tl.load(trees + i * n + word, mask=(word < length) & (i < size), other=-1).to(tl.int32)
            weight = tl.load(weights + i, mask=i < size, other=0.0)
            total += tl.where(its_head[None, :] == head, weight, 0.0)
    return total
