"""The linear algebra of an active set of trees on a GPU, in Triton: the inverse of its Gram matrix, kept up to date.

M stands for the inverse, `[capacity, capacity]` of float64, of which the first `size` rows and columns are in use. What is
kept of each tree, a vector `[CAPACITY]`, stays in registers: its weight, the sum of its row of M, and the drive: M times the
slopes e_i = <s - mu, a_i>. The step to the minimum on the affine hull is the drive, less the multiple of the sums that
makes it add up to zero.
"""

from __future__ import annotations

from pullback.inference.triton_support import constant, jit, tl

_DEPENDENT = constant(1e-4)  # as active_set.py has it


@jit()
def extend(
    inverse, line, heads, new, size, sums, length, n, TREES: tl.constexpr, COLUMNS: tl.constexpr, CAPACITY: tl.constexpr
):  # fmt: skip
    """Make a tree active, if it is affinely independent of the active ones.

    Args:
        inverse: M.
        line: scratch, `[CAPACITY]`, float64.
        heads: `[>= size + 1, n]`, int16: the active trees.
        new: `[COLUMNS]`, int32, the heads of the tree, -1 for padding.
        size: how many are active.
        sums: of the rows of M, `[CAPACITY]`, zero behind the active ones.
        length: the number of words.
        n: the pitch of the heads.
        TREES: trees looked at together.
        COLUMNS: a power of two, at least n.
        CAPACITY: the pitch of M, a power of two.

    Returns:
        1 or 0; the new sums; and the new row of M, zero behind it.
    """
    word, tree = tl.arange(0, COLUMNS), tl.arange(0, CAPACITY)
    products = tl.zeros([TREES, CAPACITY], tl.float64)
    for start in range(0, size, TREES):
        row = start + tl.arange(0, TREES)
        used = (row < size)[:, None] & (word < length)[None, :]
        other = tl.load(heads + row[:, None] * n + word[None, :], mask=used, other=-2)
        shared = tl.sum((other.to(tl.int32) == new[None, :]).to(tl.int32), 1).to(tl.float64)
        tl.store(line + row, shared, mask=row < size)
        products += shared[:, None] * _rows(inverse, row, size, CAPACITY)
    ratio = tl.sum(products, 0)
    tl.debug_barrier()
    shared = tl.load(line + tree, mask=tree < size, other=0.0)
    distance = length - tl.sum(shared * ratio, 0)
    independent = tl.where(distance > _DEPENDENT, 1, 0)
    scale = 1.0 / tl.where(independent > 0, distance, 1.0)
    entry = tl.where(tree == size, scale, -scale * ratio)
    tl.debug_barrier()
    if independent > 0:
        _add_square(inverse, line, ratio, scale, size, TREES, CAPACITY)
        tl.store(inverse + size * CAPACITY + tree, entry, mask=tree <= size)
        tl.store(inverse + tree * CAPACITY + size, entry, mask=tree < size)
        tl.store(heads + size * n + word, new.to(tl.int16), mask=word < n)
        sums += (1.0 - tl.sum(ratio, 0)) * entry
    tl.debug_barrier()
    return independent, sums, entry


@jit()
def remove(
    inverse, line, heads, index, size, n, TREES: tl.constexpr, COLUMNS: tl.constexpr, CAPACITY: tl.constexpr
):  # fmt: skip
    """Take a tree out; the last one takes its place.

    Returns:
        The tree's row of M over its diagonal entry.
    """
    word = tl.arange(0, COLUMNS)
    tree = tl.arange(0, CAPACITY)
    last = size - 1
    row = tl.load(inverse + index * CAPACITY + tree, mask=tree < size, other=0.0)
    diagonal = tl.load(inverse + index * (CAPACITY + 1))
    last_heads = tl.load(heads + last * n + word, mask=word < n, other=-1)
    tl.debug_barrier()
    _add_square(inverse, line, row, -1.0 / diagonal, size, TREES, CAPACITY)
    tl.store(heads + index * n + word, last_heads, mask=word < n)
    tl.debug_barrier()
    moved = tl.load(inverse + last * CAPACITY + tree, mask=tree < size, other=0.0)
    corner = tl.load(inverse + last * (CAPACITY + 1))
    moved = tl.where(tree == index, corner, moved)
    tl.debug_barrier()
    tl.store(inverse + index * CAPACITY + tree, moved, mask=tree < last)
    tl.store(inverse + tree * CAPACITY + index, moved, mask=tree < last)
    tl.debug_barrier()
    return row / diagonal


@jit()
def without(vector, row, index, last, CAPACITY: tl.constexpr):
    """M times a vector, after a tree was removed; `row` is what `remove` returned, `last` where the last tree was."""
    tree = tl.arange(0, CAPACITY)
    vector -= tl.sum(tl.where(tree == index, vector, 0.0), 0) * row
    return move_last(vector, index, last, CAPACITY)


@jit()
def move_last(vector, index, last, CAPACITY: tl.constexpr):
    """A vector over trees with the last one in the place of another."""
    tree = tl.arange(0, CAPACITY)
    value = tl.sum(tl.where(tree == last, vector, 0.0), 0)
    return tl.where(tree == last, 0.0, tl.where(tree == index, value, vector))


@jit()
def multiply(inverse, line, size, TREES: tl.constexpr, CAPACITY: tl.constexpr):
    """M times the vector that `line` holds."""
    products = tl.zeros([TREES, CAPACITY], tl.float64)
    for start in range(0, size, TREES):
        row = start + tl.arange(0, TREES)
        factor = tl.load(line + row, mask=row < size, other=0.0)
        products += factor[:, None] * _rows(inverse, row, size, CAPACITY)
    return tl.sum(products, 0)


@jit()
def _rows(inverse, row, size, CAPACITY: tl.constexpr):
    tree = tl.arange(0, CAPACITY)
    used = (row < size)[:, None] & (tree < size)[None, :]
    return tl.load(inverse + row[:, None] * CAPACITY + tree[None, :], mask=used, other=0.0)


@jit()
def _add_square(inverse, line, vector, scale, size, TREES: tl.constexpr, CAPACITY: tl.constexpr):
    """Add a multiple of a vector's square to M. Nobody may still read `line`."""
    tree = tl.arange(0, CAPACITY)
    tl.store(line + tree, vector, mask=tree < size)
    tl.debug_barrier()
    for start in range(0, size, TREES):
        row = start + tl.arange(0, TREES)
        factor = tl.load(line + row, mask=row < size, other=0.0) * scale
        used = (row < size)[:, None] & (tree < size)[None, :]
        new = _rows(inverse, row, size, CAPACITY) + factor[:, None] * vector[None, :]
        tl.store(inverse + row[:, None] * CAPACITY + tree[None, :], new, mask=used)


@jit()
def slopes(trees, parts, line, size, length, n, TREES: tl.constexpr, COLUMNS: tl.constexpr):
    """Write <v, a_i - a_0> for each tree a_i, with v the parts `[n, n]`."""
    word = tl.arange(0, COLUMNS)
    first = tl.load(trees + word, mask=(word < length) & (size > 0), other=0).to(tl.int32)
    level = tl.load(parts + first * n + word, mask=word < length, other=0.0).to(tl.float64)
    for start in range(0, size, TREES):
        row = start + tl.arange(0, TREES)
        used = (row < size)[:, None] & (word < length)[None, :]
        head = tl.load(trees + row[:, None] * n + word[None, :], mask=used, other=0).to(tl.int32)
        part = tl.load(parts + head * n + word[None, :], mask=used, other=0.0).to(tl.float64)
        tl.store(line + row, tl.sum(tl.where(used, part - level[None, :], 0.0), 1), mask=row < size)


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
