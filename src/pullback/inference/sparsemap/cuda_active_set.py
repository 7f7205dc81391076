"""The linear algebra of an active set on a GPU, in Triton: the inverse of its Gram matrix, kept up to date.

M stands for the inverse of <a_i, a_j> + 1, of which the first `size` rows and columns are in use. A change of the active set
adds a multiple of a vector's square to it. The last few such changes are pending: M is a matrix in memory plus
scale_c v_c v_c^T for each pending c, and only when some have come together are they added to the matrix, as a large one is far
slower to write than to read.

What is kept of each vertex, besides its weight, is a line of the workspace: the sum of its row of M, and its drive, M times
the slopes e_i = <s - mu, a_i>. The step to the minimum on the affine hull is the drive, less the multiple of the sums that
makes it add up to zero.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, jit, tl
from pullback.inference.sparsemap.cuda_state import PENDING as _MOST_PENDING
from pullback.inference.sparsemap.cuda_state import Counts, line, place, replace

VECTOR, PRODUCT, SUMS, DRIVE, STEP = constant(0), constant(1), constant(2), constant(3), constant(4)
"""The lines: M's argument and result, the sums of its rows, the drive and the step; behind them the pending changes."""
CHANGES = constant(5)
PENDING = constant(_MOST_PENDING)
_SMALL = constant(128)  # matrices of so many rows stay in the cache, where they are fast to write
_DEPENDENT = constant(1e-4)  # as active_set.py has it
_ROWS, _MANY_ROWS = constant(8), constant(32)  # of a small and of a large matrix, on the way at a time
_LISTED = constant(16)  # parts of a vertex, likewise


@jit()
def extend(active, new, counts, gap, BLOCK: tl.constexpr):
    """Make a vertex active, if it is affinely independent of the active ones.

    Args:
        active: the active set, with room for one more.
        new: int32 `[width]`, its parts; it may be one of the active vertices, from the place that it gets on.
        counts: of the active set.
        gap: its slope, the others' being zero: for the drive.
        BLOCK: vertices, or slots, looked at together.

    Returns:
        1 or 0, and the counts now.
    """
    return admit(active, new, counts, share(active, new, counts.size, BLOCK), gap, BLOCK)


@jit(noinline=True)
def admit(active, new, counts, square, gap, BLOCK: tl.constexpr):
    """What `extend` does after `share`."""
    size, pending, used = counts.size, counts.pending, counts.used
    if (size < BLOCK) & (size < _SMALL):
        independent = _extend_block(active, size, square, gap, BLOCK)
    else:
        multiply(active, size, pending, BLOCK)
        product, total = dot(line(active, VECTOR), line(active, PRODUCT), size, BLOCK)
        independent = tl.where(square - product > _DEPENDENT, 1, 0)
        if independent > 0:
            _admit(active, size, pending, total, 1.0 / (square - product), gap, BLOCK)
            pending = _change(active, size + 1, pending, BLOCK)
    if independent > 0:
        used = place(active, new, size, used, BLOCK)
        tl.store(active.weights + size, tl.where(size == 0, 1.0, 0.0))
        size += 1
        tl.debug_barrier()
    return independent, Counts(size, pending, used)


@jit()
def _extend_block(active, size, square, gap, BLOCK: tl.constexpr):
    """What `extend` does to M, the sums and the drive, where a block holds all vertices and no change is pending."""
    vertex = tl.arange(0, BLOCK)
    shared = tl.load(line(active, VECTOR) + vertex, mask=vertex < size, other=0.0)
    sums = tl.load(line(active, SUMS) + vertex, mask=vertex < size, other=0.0)
    ratio = _combine(active, line(active, VECTOR), vertex, size, _ROWS, BLOCK)
    product, total = tl.reduce((shared * ratio, ratio), 0, add_both)
    independent = tl.where(square - product > _DEPENDENT, 1, 0)
    if independent > 0:
        scale = 1.0 / (square - product)
        change = tl.where(vertex == size, -1.0, ratio)
        tl.store(line(active, PRODUCT) + vertex, change, mask=vertex <= size)
        tl.store(line(active, SUMS) + vertex, sums + scale * (total - 1.0) * change, mask=vertex <= size)
        tl.store(line(active, DRIVE) + vertex, -gap * scale * change, mask=vertex <= size)
        tl.debug_barrier()
        for start in range(0, size + 1, _ROWS):
            row = start + tl.arange(0, _ROWS)
            factor = scale * tl.load(line(active, PRODUCT) + row, mask=row <= size, other=0.0)
            at = active.inverse + row[:, None] * active.room + vertex[None, :]
            entry = tl.load(at, mask=(row < size)[:, None] & (vertex < size)[None, :], other=0.0)
            entry += factor[:, None] * change[None, :]
            tl.store(at, entry, mask=(row <= size)[:, None] & (vertex <= size)[None, :])
    return independent


@jit(noinline=True)
def share(active, new, size, BLOCK: tl.constexpr):
    """Write <a_i, z> + 1 for each active vertex; returns <z, z> + 1."""
    own = tl.zeros([_LISTED], tl.int32)
    tl.debug_barrier()
    for first in range(0, tl.maximum(size, 1), BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        count = tl.zeros([_LISTED, BLOCK], tl.int32)
        own = tl.zeros([_LISTED], tl.int32)
        for start in range(0, active.width, _LISTED):
            at = start + tl.arange(0, _LISTED)
            part = tl.load(new + at, mask=at < active.width, other=-1)
            slot = tl.load(active.slot_of + part, mask=part >= 0, other=-1)
            own += (part >= 0).to(tl.int32)
            known = (slot >= 0)[:, None] & (vertex < size)[None, :]
            word = active.bits + (vertex // 32 * active.parts)[None, :] + slot[:, None]
            count += (tl.load(word, mask=known, other=0) >> (vertex % 32)[None, :]) & 1
        shared = 1.0 + tl.sum(count, 0).to(tl.float64)
        tl.store(line(active, VECTOR) + vertex, shared, mask=vertex < size)
    tl.debug_barrier()
    return 1.0 + tl.sum(own, 0).to(tl.float64)


@jit(noinline=True)
def multiply(active, size, pending, BLOCK: tl.constexpr):
    """M times the line VECTOR, to the line PRODUCT."""
    vector, product = line(active, VECTOR), line(active, PRODUCT)
    shares = tl.zeros([PENDING], tl.float64)
    if pending > 0:
        for first in range(0, size, BLOCK):
            column = first + tl.arange(0, BLOCK)
            factor = tl.load(vector + column, mask=column < size, other=0.0)
            shares += tl.sum(_changes(active, column, size, pending) * factor[None, :], 1)
        shares *= _scales(active, pending)
    for first in range(0, size, BLOCK):
        column = first + tl.arange(0, BLOCK)
        if size <= _SMALL:
            sums = _combine(active, vector, column, size, _ROWS, BLOCK)
        else:
            sums = _combine(active, vector, column, size, _MANY_ROWS, BLOCK)
        if pending > 0:
            sums += tl.sum(shares[:, None] * _changes(active, column, size, pending), 0)
        tl.store(product + column, sums, mask=column < size)
    tl.debug_barrier()


@jit()
def _changes(active, column, size, pending):
    """A block of the pending changes, `[PENDING, BLOCK]`."""
    c = tl.arange(0, PENDING)
    used = (c < pending)[:, None] & (column < size)[None, :]
    return tl.load(line(active, CHANGES) + (c * active.room)[:, None] + column[None, :], mask=used, other=0.0)


@jit()
def _scales(active, pending):
    """The scales of the pending changes."""
    c = tl.arange(0, PENDING)
    return tl.load(active.scales + c, mask=c < pending, other=0.0)


@jit()
def _combine(active, vector, column, size, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A block of the sum of the matrix's rows, each times a number of the vector."""
    total = tl.zeros([ROWS, BLOCK], tl.float64)
    for start in range(0, size, ROWS):
        row = start + tl.arange(0, ROWS)
        factor = tl.load(vector + row, mask=row < size, other=0.0)
        used = (row < size)[:, None] & (column < size)[None, :]
        entry = tl.load(active.inverse + row[:, None] * active.room + column[None, :], mask=used, other=0.0)
        total += factor[:, None] * entry
    return tl.sum(total, 0)


@jit()
def add_both(a, b, other_a, other_b):
    """How to reduce pairs to their sums."""
    return a + other_a, b + other_b


@jit()
def dot(vector, other, size, BLOCK: tl.constexpr):
    """<vector, other>, and the sum of the other."""
    product = tl.zeros([BLOCK], tl.float64)
    total = product
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(other + at, mask=at < size, other=0.0)
        product += x * tl.load(vector + at, mask=at < size, other=0.0)
        total += x
    return tl.reduce((product, total), 0, add_both)


@jit()
def _admit(active, size, pending, total, scale, gap, BLOCK: tl.constexpr):
    """Write what a new vertex changes: its own entries of M and a change of the others, its drive, all sums, its weight."""
    for first in range(0, size + 1, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        ratio = tl.load(line(active, PRODUCT) + vertex, mask=vertex < size, other=0.0)
        change = tl.where(vertex == size, -1.0, ratio)
        sums = tl.load(line(active, SUMS) + vertex, mask=vertex < size, other=0.0)
        nothing = tl.zeros([BLOCK], tl.float64)
        tl.store(active.inverse + size * active.room + vertex, nothing, mask=vertex <= size)
        tl.store(active.inverse + vertex * active.room + size, nothing, mask=vertex < size)
        tl.store(line(active, SUMS) + vertex, sums + scale * (total - 1.0) * change, mask=vertex <= size)
        tl.store(line(active, DRIVE) + vertex, -gap * scale * change, mask=vertex <= size)
        tl.store(line(active, CHANGES) + pending * active.room + vertex, change, mask=vertex <= size)
    earlier = tl.arange(0, PENDING)
    nothing = tl.zeros([PENDING], tl.float64)
    tl.store(line(active, CHANGES) + earlier * active.room + size, nothing, mask=earlier < pending)
    tl.store(active.scales + pending, scale)
    tl.debug_barrier()


@jit()
def _change(active, size, pending, BLOCK: tl.constexpr):
    """Count one more pending change, and make them all if there are many; returns how many are pending then."""
    pending += 1
    if (pending == PENDING) | (size <= _SMALL):
        _make_changes(active, size, pending, BLOCK)
        pending = 0
    return pending


@jit(noinline=True)
def _make_changes(active, size, pending, BLOCK: tl.constexpr):
    """Add what is pending to the matrix."""
    if size <= _SMALL:
        _add_squares(active, size, pending, _ROWS, BLOCK)
    else:
        _add_squares(active, size, pending, _MANY_ROWS, BLOCK)
    tl.debug_barrier()


@jit()
def _add_squares(active, size, pending, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(0, size, ROWS):
        row = start + tl.arange(0, ROWS)
        for first in range(0, size, BLOCK):
            column = first + tl.arange(0, BLOCK)
            used = (row < size)[:, None] & (column < size)[None, :]
            at = active.inverse + row[:, None] * active.room + column[None, :]
            total = tl.load(at, mask=used, other=0.0)
            for c in range(0, pending):
                change = line(active, CHANGES) + c * active.room
                factor = tl.load(active.scales + c) * tl.load(change + row, mask=row < size, other=0.0)
                total += factor[:, None] * tl.load(change + column, mask=column < size, other=0.0)[None, :]
            tl.store(at, total, mask=used)


@jit(noinline=True)
def remove(active, index, counts, BLOCK: tl.constexpr):
    """Take a vertex out; the last one takes its place. Returns the counts now."""
    size, pending = counts.size, counts.pending
    last = size - 1
    row = line(active, VECTOR)
    _row(active, row, index, size, pending, BLOCK)
    diagonal, shared = tl.load(row + index), tl.load(row + last)
    _without(active, line(active, SUMS), index, last, diagonal, shared, BLOCK)
    _without(active, line(active, DRIVE), index, last, diagonal, shared, BLOCK)
    corner = tl.load(active.inverse + last * (active.room + 1))
    change = tl.arange(0, PENDING) * active.room
    moved_changes = tl.load(line(active, CHANGES) + change + last, mask=change < pending * active.room, other=0.0)
    tl.debug_barrier()
    for first in range(0, last, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        moved = tl.load(active.inverse + last * active.room + vertex, mask=vertex < last, other=0.0)
        moved = tl.where(vertex == index, corner, moved)
        tl.store(active.inverse + index * active.room + vertex, moved, mask=vertex < last)
        tl.store(active.inverse + vertex * active.room + index, moved, mask=vertex < last)
        entry = tl.load(row + vertex, mask=vertex < last, other=0.0)
        entry = tl.where(vertex == index, shared, entry)
        tl.store(line(active, CHANGES) + pending * active.room + vertex, entry, mask=vertex < last)
    tl.store(line(active, CHANGES) + change + index, moved_changes, mask=(change < pending * active.room) & (index < last))
    tl.store(active.scales + pending, -1.0 / diagonal)
    replace(active, index, last, counts.used, BLOCK)
    pending = _change(active, last, pending, BLOCK)
    return Counts(last, pending, counts.used)


@jit()
def _row(active, out, index, size, pending, BLOCK: tl.constexpr):
    """Write a row of M."""
    c = tl.arange(0, PENDING)
    own = tl.load(line(active, CHANGES) + c * active.room + index, mask=c < pending, other=0.0) * _scales(active, pending)
    for first in range(0, size, BLOCK):
        column = first + tl.arange(0, BLOCK)
        total = tl.load(active.inverse + index * active.room + column, mask=column < size, other=0.0)
        if pending > 0:
            total += tl.sum(own[:, None] * _changes(active, column, size, pending), 0)
        tl.store(out + column, total, mask=column < size)
    tl.debug_barrier()


@jit()
def _without(active, vector, index, last, diagonal, shared, BLOCK: tl.constexpr):
    """M times something, after a vertex was removed whose row of M is the line VECTOR."""
    ratio, moved = tl.load(vector + index) / diagonal, tl.load(vector + last)
    tl.debug_barrier()
    for first in range(0, last, BLOCK):
        vertex = first + tl.arange(0, BLOCK)
        row = tl.load(line(active, VECTOR) + vertex, mask=vertex < last, other=0.0)
        value = tl.load(vector + vertex, mask=vertex < last, other=0.0) - ratio * row
        value = tl.where(vertex == index, moved - ratio * shared, value)
        tl.store(vector + vertex, value, mask=vertex < last)
    tl.debug_barrier()
