"""From a sentence's scores to its charts on a GPU, in Triton.

The root is position 0 and word m position m + 1, so that its items are those of any other word: README.md's prefix(j) is
right(0, j), its root_arc(r) the right arc from 0 to r + 1. A chart is `[width, start]` with `pitch` numbers a width, so that
neighbouring lanes, which have neighbouring starts, read neighbouring numbers. The charts right, left, right_arc and
left_arc follow each other; a sweep finds the scores of arcs in the last two, and replaces them by the arcs' items.

The first half of a program's lanes works on the right items of its spans, the second half on the left ones. Each computes
the between items of its spans for itself: twice the sums, but nothing to exchange.
"""

from __future__ import annotations

from pullback.inference.triton_support import jit, tl


@jit()
def length_of(lengths, sentence, n):
    """The length of a sentence; 0 for one that is out of range."""
    length = tl.load(lengths + sentence)
    return tl.where((length >= 0) & (length <= n), length, 0).to(tl.int32)


@jit()
def spans_of(first, width, length, LANES: tl.constexpr):
    """For each lane the start of its span, whether it works on left items, and whether there is such a span."""
    lane = tl.arange(0, LANES)
    start = first + lane % (LANES // 2)
    return start, lane >= LANES // 2, start + width <= length


@jit()
def arc_target(head, word, pitch):
    """Where the item of an arc stands, from the start of the chart right_arc; a word's own index is the root."""
    right, left = (word - head) * pitch + head + 1, (pitch + head - word) * pitch + word + 1
    return tl.where(head < word, right, tl.where(head > word, left, (word + 1) * pitch))


@jit()
def load_scores(scores, head, word, length, n):
    """A tile of scores, -inf where there is none, and whether it holds NaN or +inf among the words."""
    real = (head < length) & (word < length)
    score = tl.load(scores + head * n + word, mask=real, other=float("-inf"))
    garbled = (score != score) | (score == float("inf"))
    return tl.where(garbled, float("-inf"), score), real, garbled


@jit()
def lay_out(scores, length, n, charts, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Write the scores to the charts of arcs, and empty spans; returns 1 if a score is NaN or +inf, else 0."""
    pitch = n + 1
    arcs = charts + 2 * pitch * pitch
    worst = tl.zeros([ROWS, LANES], tl.int32)
    for first_head in range(0, length, ROWS):
        for first_word in range(0, length, LANES):
            head = (first_head + tl.arange(0, ROWS))[:, None]
            word = (first_word + tl.arange(0, LANES))[None, :]
            score, real, garbled = load_scores(scores, head, word, length, n)
            tl.store(arcs + arc_target(head, word, pitch), score, mask=real)
            worst = worst | garbled.to(tl.int32)
    _empty_spans(length, pitch, charts, float("-inf"), LANES)
    return tl.max(tl.max(worst, 1), 0)


@jit()
def lay_out_logs(scores, length, n, charts, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Write base-2 logs of the scores' weights to the charts of arcs, less each column's largest, and empty spans.

    Returns:
        The sum of the largest scores, in their own unit, and 1 if a score is NaN or +inf, else 0.
    """
    pitch = n + 1
    arcs = charts + 2 * pitch * pitch
    worst = tl.zeros([ROWS, LANES], tl.int32)
    shift = tl.zeros([LANES], tl.float64)
    for first_word in range(0, length, LANES):
        word = (first_word + tl.arange(0, LANES))[None, :]
        top = tl.full([LANES], float("-inf"), tl.float64)
        for first_head in range(0, length, ROWS):
            head = (first_head + tl.arange(0, ROWS))[:, None]
            score, _, garbled = load_scores(scores, head, word, length, n)
            top = tl.maximum(top, tl.max(score, 0).to(tl.float64))
            worst = worst | garbled.to(tl.int32)
        top = tl.where(top > float("-inf"), top, 0.0)
        shift += top
        for first_head in range(0, length, ROWS):
            head = (first_head + tl.arange(0, ROWS))[:, None]
            score, real, _ = load_scores(scores, head, word, length, n)
            log_weight = (score.to(tl.float64) - top[None, :]) * 1.4426950408889634  # log2(e)
            tl.store(arcs + arc_target(head, word, pitch), log_weight, mask=real)
    _empty_spans(length, pitch, charts, float("-inf"), LANES)
    return tl.sum(shift, 0), tl.max(tl.max(worst, 1), 0)


@jit()
def lay_out_direction(direction, scores, length, n, slopes, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Write the direction to the charts of arcs' slopes, 0 for what is forbidden, and zeros for empty spans."""
    pitch = n + 1
    arcs = slopes + 2 * pitch * pitch
    for first_head in range(0, length, ROWS):
        for first_word in range(0, length, LANES):
            head = (first_head + tl.arange(0, ROWS))[:, None]
            word = (first_word + tl.arange(0, LANES))[None, :]
            score, real, _ = load_scores(scores, head, word, length, n)
            slope = tl.load(direction + head * n + word, mask=score > float("-inf"), other=0.0)
            tl.store(arcs + arc_target(head, word, pitch), slope.to(tl.float64), mask=real)
    _empty_spans(length, pitch, slopes, 0.0, LANES)


@jit()
def _empty_spans(length, pitch, charts, forbidden, LANES: tl.constexpr):
    """Complete items of width 0 are 0; no arc ends at the root."""
    size = pitch * pitch
    for first in range(0, length + 1, LANES):
        start = first + tl.arange(0, LANES)
        real = start <= length
        zero = tl.zeros([LANES], charts.dtype.element_ty)
        tl.store(charts + start, zero, mask=real)
        tl.store(charts + size + start, zero, mask=real)
        tl.store(charts + 3 * size + start * pitch, zero + forbidden, mask=real & (start > 0))


@jit()
def clear(out, size, BLOCK: tl.constexpr):
    """Fill with zeros."""
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(out + at, tl.zeros([BLOCK], out.dtype.element_ty), mask=at < size)
