"""The Jacobian of SparseMAP on a GPU, applied: the projection onto the directions between active trees, in Triton."""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import length_of
from pullback.inference.sparsemap.cuda_active_set import extend, mix, multiply, slopes
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "capacity", "smaller"])
def apply(
    heads, sizes, lengths, direction, out, inverses, trees, batch, n, capacity, smaller,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, TREES: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    """Project `[B, n, n]` directions, one for each sentence; what no active tree uses becomes zero.

    Args:
        heads: `[B, capacity, n]`, int16: the active trees.
        sizes: `[B]`, int32, how many they are.
        lengths: `[B]`.
        direction: `[B, n, n]`.
        out: `[B, n, n]`, zeros, to write.
        inverses: scratch, CAPACITY^2 + CAPACITY of float64 a program.
        trees: scratch, CAPACITY n of int16 a program.
        batch: B.
        n: the size of the directions.
        capacity: the most trees.
        smaller: sentences with so many trees or less are left to another launch.
        ROWS: heads looked at together.
        COLUMNS: words looked at together, a power of two, at least n.
        TREES: trees looked at together.
        CAPACITY: a power of two.
    """
    program = tl.program_id(0).to(tl.int64)
    inverse = inverses + program * (CAPACITY * CAPACITY + CAPACITY)
    line = inverse + CAPACITY * CAPACITY
    trees += program * CAPACITY * n
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        b = tl.cast(sentence, tl.int64)
        size = tl.load(sizes + b)
        if (size > smaller) & (size <= CAPACITY):
            length = length_of(lengths, sentence, n)
            kept, sums = _invert(
                heads + b * capacity * n, size, inverse, line, trees, length, n, TREES, COLUMNS, CAPACITY
            )  # fmt: skip
            slopes(trees, direction + b * n * n, line, kept, length, n, TREES, COLUMNS)
            tl.debug_barrier()
            drive = multiply(inverse, line, kept, TREES, CAPACITY)
            tl.debug_barrier()
            step = drive - tl.sum(drive, 0) / tl.where(kept > 0, tl.sum(sums, 0), 1.0) * sums
            tree = tl.arange(0, CAPACITY)
            tl.store(line + tree, step, mask=tree < kept)
            tl.debug_barrier()
            _write(trees, line, out + b * n * n, kept, length, n, ROWS, COLUMNS)
            tl.debug_barrier()


@jit()
def _invert(
    heads, size, inverse, line, trees, length, n, TREES: tl.constexpr, COLUMNS: tl.constexpr, CAPACITY: tl.constexpr
):  # fmt: skip
    """Copy the trees that do not depend on others, and invert their Gram matrix; returns how many, and its sums."""
    word = tl.arange(0, COLUMNS)
    sums = tl.zeros([CAPACITY], tl.float64)
    kept = 0
    for i in range(0, size):
        new = tl.load(heads + i * n + word, mask=word < length, other=-1).to(tl.int32)
        independent, sums, _ = extend(inverse, line, trees, new, kept, sums, length, n, TREES, COLUMNS, CAPACITY)
        kept += independent
    return kept, sums


@jit()
def _write(trees, line, out, size, length, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    word = tl.arange(0, COLUMNS)
    for start in range(0, length, ROWS):
        head = (start + tl.arange(0, ROWS))[:, None]
        total = mix(trees, line, size, head, length, n, ROWS, COLUMNS)
        real = (head < length) & (word < length)[None, :]
        tl.store(out + head * n + word[None, :], total.to(out.dtype.element_ty), mask=real)
