"""The best projective trees on a GPU: Eisner's algorithm in Triton, one program a sentence.

README.md names the items, cuda_layout.py the charts. Spans of a width are computed together; a barrier stands between
widths, so a sentence of n words takes n steps up the chart, and n steps down again to follow the splits.
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import clear, lay_out, length_of
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "multiroot"])
def argmax(
    scores, lengths, z, charts, splits, batch, n, multiroot, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Write the best trees of `[B, n, n]` scores as 0/1 matrices, zeros where there is none.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        z: `[B, n, n]`, to write.
        charts: scratch, 4 charts of the scores' dtype a program.
        splits: scratch, 5 charts of int16 a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        ROWS: splits looked at together.
        COLUMNS: spans looked at together.
    """
    size = (n + 1) * (n + 1)
    program = tl.program_id(0)
    charts += program.to(tl.int64) * 4 * size
    splits += program.to(tl.int64) * 5 * size
    for sentence in range(program, batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        clear(z + matrix, n * n, ROWS * COLUMNS)
        clear(splits + 3 * size, 2 * size, ROWS * COLUMNS)
        garbled = lay_out(scores + matrix, length, n, charts, ROWS, COLUMNS)
        tl.debug_barrier()
        for width in range(1, length + 1):
            _spans(width, length, n + 1, multiroot, charts, splits, ROWS, COLUMNS)
            tl.debug_barrier()
        best = tl.load(charts + length * (n + 1))
        exists = (best > float("-inf")) & (garbled == 0)
        tl.store(splits + 3 * size + length * (n + 1), exists.to(tl.int16))
        tl.debug_barrier()
        for done in range(0, length):
            _follow(length - done, length, n, splits, z + matrix, COLUMNS)
            tl.debug_barrier()


@jit()
def _spans(width, length, pitch, multiroot, charts, splits, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The items of all spans of a width. Of several best splits the leftmost is taken."""
    size = pitch * pitch
    right, left, right_arc, left_arc = charts, charts + size, charts + 2 * size, charts + 3 * size
    for first in range(0, length + 1 - width, COLUMNS):
        start = first + tl.arange(0, COLUMNS)
        real = start + width <= length
        worst = tl.full([COLUMNS], float("-inf"), charts.dtype.element_ty)
        leftmost = tl.zeros([COLUMNS], tl.int32)
        between, right_old, left_old = worst, worst, worst
        between_at, right_at, left_at = leftmost, leftmost, leftmost
        for first_split in range(0, width, ROWS):
            split = (first_split + tl.arange(0, ROWS))[:, None]
            near = split * pitch + start[None, :]
            far = (width - 1 - split) * pitch + start[None, :] + split + 1
            used = (split < width) & real[None, :]
            one_root = used & ((split == 0) | (start[None, :] > 0) | (multiroot != 0))
            # the arc of the span itself is not there yet: the last split of right, the one before the first of left
            older = (split < width - 1) & real[None, :]
            terms = _sum(right + near, left + far, one_root)
            between, between_at = _better(terms, first_split, between, between_at)
            terms = _sum(right_arc + near + pitch, right + far, older)
            right_old, right_at = _better(terms, first_split, right_old, right_at)
            terms = _sum(left + near + pitch, left_arc + far, older)
            left_old, left_at = _better(terms, first_split, left_old, left_at)
        at = width * pitch + start
        right_new = between + tl.load(right_arc + at, mask=real, other=0.0)
        left_new = between + tl.load(left_arc + at, mask=real, other=0.0)
        tl.store(right_arc + at, right_new, mask=real)
        tl.store(left_arc + at, left_new, mask=real)
        tl.store(right + at, tl.where(right_new > right_old, right_new, right_old), mask=real)
        tl.store(left + at, tl.where(left_old > left_new, left_old, left_new), mask=real)
        right_at = tl.where(right_new > right_old, width - 1, right_at)
        left_at = tl.where(left_old > left_new, left_at + 1, 0)
        tl.store(splits + at, between_at.to(tl.int16), mask=real)
        tl.store(splits + size + at, right_at.to(tl.int16), mask=real)
        tl.store(splits + 2 * size + at, left_at.to(tl.int16), mask=real)


@jit()
def _sum(a, b, mask):
    return tl.load(a, mask=mask, other=float("-inf")) + tl.load(b, mask=mask, other=float("-inf"))


@jit()
def _better(terms, first, best, at):
    """The better of the best term so far and the best of a tile, the first in doubt."""
    value, row = tl.max(terms, 0, return_indices=True)
    better = value > best
    return tl.where(better, value, best), tl.where(better, first + row, at)


@jit()
def _follow(width, length, n, splits, z, COLUMNS: tl.constexpr):
    """Write the arcs of the used complete items of a width, and mark the narrower items that they use."""
    pitch = n + 1
    size = pitch * pitch
    right_used, left_used = splits + 3 * size, splits + 4 * size
    one = tl.full([COLUMNS], 1, tl.int16)
    for first in range(0, length + 1 - width, COLUMNS):
        start = first + tl.arange(0, COLUMNS)
        at = width * pitch + start
        real = start + width <= length
        used = tl.load(right_used + at, mask=real, other=0) != 0
        split = tl.load(splits + size + at, mask=used, other=0).to(tl.int32)
        word = start + split
        tl.store(z + tl.where(start == 0, word, start - 1) * n + word, one.to(z.dtype.element_ty), mask=used)
        gap = tl.load(splits + (split + 1) * pitch + start, mask=used, other=0).to(tl.int32)
        tl.store(right_used + (width - 1 - split) * pitch + word + 1, one, mask=used)
        tl.store(right_used + gap * pitch + start, one, mask=used)
        tl.store(left_used + (split - gap) * pitch + start + gap + 1, one, mask=used)

        used = tl.load(left_used + at, mask=real, other=0) != 0
        split = tl.load(splits + 2 * size + at, mask=used, other=0).to(tl.int32)
        word = start + split - 1
        tl.store(z + (start + width - 1) * n + word, one.to(z.dtype.element_ty), mask=used)
        gap = tl.load(splits + (width - split) * pitch + word + 1, mask=used, other=0).to(tl.int32)
        tl.store(left_used + split * pitch + start, one, mask=used)
        tl.store(right_used + gap * pitch + word + 1, one, mask=used)
        tl.store(left_used + (width - 1 - split - gap) * pitch + word + gap + 2, one, mask=used)
