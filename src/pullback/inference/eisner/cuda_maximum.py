"""The best projective trees on a GPU: Eisner's algorithm in Triton, one program a sentence.

README.md names the items, cuda_layout.py the charts and lanes. Spans of a width are computed together; a barrier stands
between widths, so a sentence of n words takes n steps up the chart, and n steps down again to follow the splits.
"""

from __future__ import annotations

from pullback.inference.eisner.cuda_layout import chart_sizes, charts_of, empty_charts, fill, lay_out, length_of, spans_of
from pullback.inference.triton_support import jit, tl


@jit(do_not_specialize=["batch", "n", "multiroot"])
def argmax(scores, lengths, z, scratch, splits, batch, n, multiroot, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Write the best trees of `[B, n, n]` scores as 0/1 matrices, zeros where there is none.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        z: `[B, n, n]`, to write.
        scratch: charts of the scores' dtype for each program.
        splits: scratch, 5 charts of int16 a program: of between, right and left, and which right and left are used.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        ROWS: splits looked at together.
        LANES: spans looked at together, on both sides.
    """
    size, guard = chart_sizes(n, ROWS, LANES)
    charts = charts_of(scratch, size, guard, 1)
    square = (n + 1) * (n + 1)
    splits += tl.program_id(0).to(tl.int64) * 5 * square
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        fill(z + matrix, n * n, 0.0, 32 * LANES)
        fill(splits + 3 * square, 2 * square, 0, 32 * LANES)
        empty_charts(charts, size, guard, length, float("-inf"), LANES)
        garbled = lay_out(scores + matrix, length, n, charts + 5 * size, size, 32, LANES // 2)
        tl.debug_barrier()
        for width in range(1, length + 1):
            _spans(width, length, n + 1, multiroot, charts, size, splits, ROWS, LANES)
            tl.debug_barrier()
        exists = (tl.load(charts + length * (n + 1)) > float("-inf")) & (garbled == 0)
        tl.store(splits + 3 * square + length * (n + 1), exists.to(tl.int16))
        tl.debug_barrier()
        for done in range(0, length):
            _follow(length - done, length, n, splits, z + matrix, LANES)
            tl.debug_barrier()


@jit()
def _spans(width, length, pitch, multiroot, charts, size, splits, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The items of all spans of a width. Of several best splits the leftmost is taken."""
    row = tl.arange(0, ROWS)[:, None]
    for first in range(0, length + 1 - width, LANES // 2):
        start, left, real = spans_of(first, width, length, LANES)
        near, far = charts + start[None, :], charts + (width - 1) * pitch + start[None, :] + 1
        side_near = near + tl.where(left, size, 2 * size)[None, :] + pitch
        side_far = far + tl.where(left, 3 * size, 0)[None, :]
        between = tl.full([LANES], float("-inf"), charts.dtype.element_ty)
        between_at = tl.zeros([LANES], tl.int32)
        best, best_at = between, between_at
        for split in range(0, width, ROWS):
            up, down = (split + row) * pitch, (split + row) * (1 - pitch)
            between, between_at = _better(near + up, far + size + down, split, between, between_at)
            best, best_at = _better(side_near + up, side_far + down, split, best, best_at)
        # the arc of the span itself: the last split of right, the one before the first of left
        at = width * pitch + start
        side = tl.where(left, size, 0)
        arc = between + tl.load(charts + 5 * size + side + at, mask=real, other=0.0)
        new = tl.where(left, arc >= best, arc > best)
        best_at = tl.where(left, tl.where(new, 0, best_at + 1), tl.where(new, width - 1, best_at))
        tl.store(charts + 2 * size + side + at, arc, mask=real)
        # a single root's right items are used nowhere but at the end
        used = real & (left | (start > 0) | (width == length) | (multiroot != 0))
        tl.store(charts + side + at, tl.where(new, arc, best), mask=used)
        square = pitch * pitch
        tl.store(splits + at, between_at.to(tl.int16), mask=real & ~left)
        tl.store(splits + tl.where(left, 2 * square, square) + at, best_at.to(tl.int16), mask=real)


@jit()
def _better(a, b, first, best, at):
    """The better of the best sum so far and the best of a tile of sums, the first in doubt."""
    value, row = tl.max(tl.load(a) + tl.load(b), 0, return_indices=True)
    better = value > best
    return tl.where(better, value, best), tl.where(better, first + row, at)


@jit()
def _follow(width, length, n, splits, z, LANES: tl.constexpr):
    """Write the arcs of the used complete items of a width, and mark the narrower items that they use."""
    pitch = n + 1
    size = pitch * pitch
    marks = splits + 3 * size
    one = tl.full([LANES], 1, tl.int16)
    for first in range(0, length + 1 - width, LANES // 2):
        start, left, real = spans_of(first, width, length, LANES)
        side = tl.where(left, size, 0)
        at = width * pitch + start
        used = tl.load(marks + side + at, mask=real, other=0) != 0
        split = tl.load(splits + size + side + at, mask=used, other=0).to(tl.int32)
        # the arc's span: `inner` words wide, from `low`
        inner, low = tl.where(left, width - split, split + 1), tl.where(left, start + split, start)
        gap = tl.load(splits + inner * pitch + low, mask=used, other=0).to(tl.int32)
        tl.store(marks + side + (width - inner) * pitch + tl.where(left, start, start + inner), one, mask=used)
        tl.store(marks + gap * pitch + low, one, mask=used)
        tl.store(marks + size + (inner - 1 - gap) * pitch + low + gap + 1, one, mask=used)
        word = tl.where(left, low, low + inner) - 1
        head = tl.where(left, low + inner, low) - 1
        tl.store(z + tl.where(head < 0, word, head) * n + word, one.to(z.dtype.element_ty), mask=used)
