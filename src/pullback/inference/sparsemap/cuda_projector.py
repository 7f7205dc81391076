"""The Jacobian of SparseMAP on a GPU, applied: the projection onto the directions between active trees, in Triton."""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import length_of
from pullback.inference.sparsemap.cuda_active_set import extend, mix, multiply, slopes, step_of
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "capacity", "smaller"])
def apply(
    heads, sizes, lengths, direction, out, inverses, trees, all_columns, batch, n, capacity, smaller,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Project `[B, n, n]` directions, one for each sentence; what no active tree uses becomes zero.

    Args:
        heads: `[B, capacity, n]`, int16: the active trees.
        sizes: `[B]`, int32, how many they are.
        lengths: `[B]`.
        direction: `[B, n, n]`.
        out: `[B, n, n]`, zeros, to write.
        inverses: scratch, CAPACITY (CAPACITY + 5 + PENDING) of float64 a program.
        trees: scratch, CAPACITY n of int16 a program.
        all_columns: likewise.
        batch: B.
        n: the size of the directions.
        capacity: the most trees.
        smaller: sentences with so many trees or less are left to another launch.
        ROWS: heads looked at together.
        COLUMNS: words looked at together, a power of two, at least n.
        CAPACITY: a power of two.
        PENDING: how many changes of an inverse come together, a power of two.
    """
    program = tl.program_id(0).to(tl.int64)
    inverse = inverses + program * CAPACITY * (CAPACITY + 5 + PENDING)
    line = inverse + CAPACITY * CAPACITY
    trees += program * CAPACITY * n
    columns = all_columns + program * CAPACITY * n
    tree = tl.arange(0, CAPACITY)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        b = tl.cast(sentence, tl.int64)
        size = tl.load(sizes + b)
        if (size > smaller) & (size <= CAPACITY):
            length = length_of(lengths, sentence, n)
            kept, pending, sums = _invert(
                heads + b * capacity * n, size, inverse, trees, columns, length, n, COLUMNS, CAPACITY, PENDING
            )  # fmt: skip
            e = slopes(columns, direction + b * n * n, kept, length, n, CAPACITY)
            tl.store(line + tree, e, mask=tree < kept)
            tl.debug_barrier()
            step = step_of(multiply(inverse, pending, kept, CAPACITY), sums)
            tl.debug_barrier()
            tl.store(line + tree, step, mask=tree < kept)
            tl.debug_barrier()
            _write(trees, line, out + b * n * n, kept, length, n, ROWS, COLUMNS)
            tl.debug_barrier()


@jit()
def _invert(
    heads, size, inverse, trees, columns, length, n,
    COLUMNS: tl.constexpr, CAPACITY: tl.constexpr, PENDING: tl.constexpr,
):  # fmt: skip
    """Copy the trees that do not depend on others, and invert their Gram matrix.

    Returns:
        How many they are, how many changes of the inverse are pending, and the sums of its rows.
    """
    sums = tl.zeros([CAPACITY], tl.float64)
    kept, pending = 0, 0
    for i in range(0, size):
        independent, pending, sums, _ = extend(
            inverse, pending, trees, columns, heads + i * n, kept, sums, length, n, COLUMNS, CAPACITY, PENDING
        )  # fmt: skip
        kept += independent
    return kept, pending, sums


@jit()
def _write(trees, line, out, size, length, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    word = tl.arange(0, COLUMNS)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        total = mix(trees, line, size, head, length, n, ROWS, COLUMNS)
        real = (head < length) & (word < length)[None, :]
        tl.store(out + head * n + word[None, :], total.to(out.dtype.element_ty), mask=real)
