"""The best projective trees on a GPU: Eisner's algorithm in Triton, one program a sentence.

README.md names the items, cuda_layout.py the lanes and the order of charts; here are the first four only, of (n + 1)^2
numbers each and without guards: masks are cheaper where a term costs so little. A sweep finds the scores of arcs in the charts
of arcs and replaces them by items. Spans of a width are computed together; a barrier stands between widths, so a
sentence of n words takes n steps up the chart, and n steps down again to follow the splits.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.eisner.cuda_charts import RIGHT, charts_of, follow, place, read, spans
from pullback.inference.eisner.cuda_layout import beyond, fill, lay_out, length_of, spans_of


@jit(do_not_specialize=["batch", "n", "multiroot"])
def argmax(scores, lengths, z, charts, splits, batch, n, multiroot, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Write the best trees of `[B, n, n]` scores as 0/1 matrices, NaN where there is none.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        z: `[B, n, n]`, to write.
        charts: scratch, 4 charts of the scores' dtype a program.
        splits: scratch, 5 charts of int16 a program: of between, right and left, and which right and left are used.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        ROWS: splits looked at together.
        LANES: spans looked at together, on both sides.
    """
    size = (n + 1) * (n + 1)
    program = tl.program_id(0)
    charts += program.to(tl.int64) * 4 * size
    splits += program.to(tl.int64) * 5 * size
    for sentence in range(program, batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        fill(z + matrix, n * n, 0.0, 32 * LANES)
        fill(splits + 3 * size, 2 * size, 0, 32 * LANES)
        _edges(charts, size, length, n + 1, LANES)
        garbled = lay_out(scores + matrix, length, n, charts + 2 * size, size, 32, LANES // 2)
        garbled = garbled | beyond(lengths, sentence, n)
        tl.debug_barrier()
        for width in range(1, length + 1):
            _spans(width, length, n + 1, multiroot, charts, splits, ROWS, LANES)
            tl.debug_barrier()
        exists = (tl.load(charts + length * (n + 1)) > float("-inf")) & (garbled == 0)
        tl.store(splits + 3 * size + length * (n + 1), exists.to(tl.int16))
        tl.debug_barrier()
        for done in range(0, length):
            _follow(length - done, length, n, splits, z + matrix, LANES)
            tl.debug_barrier()
        if not exists:
            fill(z + matrix, n * n, float("nan"), 32 * LANES)


@jit()
def _edges(charts, size, length, pitch, LANES: tl.constexpr):
    """Complete items of width 0 score 0; no arc ends at the root."""
    for first in range(0, length + 1, LANES):
        start = first + tl.arange(0, LANES)
        zero = tl.zeros([LANES], charts.dtype.element_ty)
        tl.store(charts + start, zero, mask=start <= length)
        tl.store(charts + size + start, zero, mask=start <= length)
        tl.store(charts + 3 * size + start * pitch, zero - float("inf"), mask=(start <= length) & (start > 0))


@jit()
def _spans(width, length, pitch, multiroot, charts, splits, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The items of all spans of a width. Of several best splits the leftmost is taken."""
    size = pitch * pitch
    for first in range(0, length + 1 - width, LANES // 2):
        start, left, real = spans_of(first, width, length, LANES)
        side = tl.where(left, size, 0)
        arcs = 2 * size + side
        between = tl.full([LANES], float("-inf"), charts.dtype.element_ty)
        between_at = tl.zeros([LANES], tl.int32)
        best, best_at = between, between_at
        for first_split in range(0, width, ROWS):
            split = (first_split + tl.arange(0, ROWS))[:, None]
            near = split * pitch + start[None, :]
            far = (width - 1 - split) * pitch + start[None, :] + split + 1
            used = (split < width) & real[None, :] & ((split == 0) | (start[None, :] > 0) | (multiroot != 0))
            between, between_at = _better(charts + near, charts + size + far, used, first_split, between, between_at)
            # the arc of the span itself is not there yet: the last split of right, the one before the first of left
            used = (split < width - 1) & real[None, :]
            a = charts + tl.where(left, size, 2 * size)[None, :] + near + pitch
            b = charts + tl.where(left, 3 * size, 0)[None, :] + far
            best, best_at = _better(a, b, used, first_split, best, best_at)
        at = width * pitch + start
        arc = between + tl.load(charts + arcs + at, mask=real, other=0.0)
        new = tl.where(left, arc >= best, arc > best)
        best_at = tl.where(left, tl.where(new, 0, best_at + 1), tl.where(new, width - 1, best_at))
        tl.store(charts + arcs + at, arc, mask=real)
        tl.store(charts + side + at, tl.where(new, arc, best), mask=real)
        tl.store(splits + at, between_at.to(tl.int16), mask=real & ~left)
        tl.store(splits + size + side + at, best_at.to(tl.int16), mask=real)


@jit()
def _better(a, b, mask, first, best, at):
    """The better of the best sum so far and the best of a tile of sums, the first in doubt."""
    terms = tl.load(a, mask=mask, other=float("-inf")) + tl.load(b, mask=mask, other=float("-inf"))
    value, row = tl.max(terms, 0, return_indices=True)
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


@jit(do_not_specialize=["batch", "n", "multiroot", "pitch"])
def short(scores, lengths, z, scratch, batch, n, multiroot, pitch, LEVELS: tl.constexpr):
    """`argmax` for sentences of fewer than 2^LEVELS words, at most 50, in float32: see cuda_charts.py.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        z: `[B, n, n]`, to write.
        scratch: int32, `pitch` for each program.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        pitch: how much scratch a program has.
        LEVELS: the logarithm of the number of positions.
    """
    at = tl.arange(0, 1 << LEVELS)
    splits = scratch + tl.program_id(0).to(tl.int64) * pitch
    charts = charts_of(splits, LEVELS)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        arc = at[:, None] * n + at[None, :]
        score = tl.load(scores + matrix + arc, mask=(at < length)[:, None] & (at < length)[None, :], other=0.0)
        garbled = tl.max(tl.max(((score != score) | (score == float("inf"))).to(tl.int32), 1), 0)
        garbled = garbled | beyond(lengths, sentence, n)
        spans(scores + matrix, charts, splits, length, n, multiroot, True, LEVELS)
        exists = (read(charts, place(RIGHT, 0, length, LEVELS)) > float("-inf")) & (garbled == 0)
        nothing = tl.where(exists, 0.0, float("nan"))
        tl.store(z + matrix + arc, tl.zeros_like(score) + nothing, mask=(at < n)[:, None] & (at < n)[None, :])
        tl.debug_barrier()
        if exists:
            above = follow(length, splits, LEVELS)
            head = tl.where(above == 0, at - 1, above - 1)
            one = tl.full([1 << LEVELS], 1.0, tl.float32)
            tl.store(z + matrix + head * n + at - 1, one, mask=(at > 0) & (at <= length))
        tl.debug_barrier()
