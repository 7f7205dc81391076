"""Charts on a GPU, and from a sentence's scores to its charts, in Triton.

The root is position 0 and word m position m + 1, so that its items are those of any other word: README.md's prefix(j) is
right(0, j), its root_arc(r) the right arc from 0 to r + 1. A chart is `[width, start]` with `pitch` numbers a width, so that
neighbouring lanes, which have neighbouring starts, read neighbouring numbers. A program's charts follow each other:
right, left, right_arc, left_arc, between, and two for the scores of right and of left arcs.

The first half of a program's lanes works on the right items of its spans, the second half on the left ones. Each computes
the between items of its spans for itself: twice the sums, but nothing to exchange.

Sums run over tiles of ROWS splits, without masks for the splits. So what a tile reads beside the splits there are has to be
zero: all that is no item, or no item yet, in the charts, in the ROWS rows below each, and in the guards before and after.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.eisner.cuda_numbers import from_log2, store, zeros

CHARTS = 7


def scratch_size(n: int, ROWS: int, LANES: int) -> int:
    """How many numbers the charts of a program have, guards included."""
    return CHARTS * (n + 1 + ROWS) * (n + 1) + 2 * (ROWS * (n + 1) + LANES)


@jit()
def chart_sizes(n, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The size of a chart, and of the guard before the first and after the last."""
    return (n + 1 + ROWS) * (n + 1), ROWS * (n + 1) + LANES


@jit()
def charts_of(scratch, size, guard, PARTS: tl.constexpr):
    """The first chart of this program, whose numbers have PARTS elements each."""
    return scratch + (tl.program_id(0).to(tl.int64) * (7 * size + 2 * guard) + guard) * PARTS


@jit()
def read_lanes(real, LANES: tl.constexpr):
    """Which lanes to read for: the real ones where memory is what limits a sweep, all where it is instructions."""
    return (real | (LANES <= 128))[None, :]


@jit()
def length_of(lengths, sentence, n):
    """The length of a sentence; 0 for one that is out of range."""
    length = tl.load(lengths + sentence)
    return tl.where((length >= 0) & (length <= n), length, 0).to(tl.int32)


@jit()
def beyond(lengths, sentence, n):
    """1 if the length of a sentence is out of range, else 0."""
    length = tl.load(lengths + sentence)
    return tl.where((length >= 0) & (length <= n), 0, 1)


@jit()
def spans_of(first, width, length, LANES: tl.constexpr):
    """For each lane the start of its span, whether it works on left items, and whether there is such a span."""
    lane = tl.arange(0, LANES)
    start = first + lane % (LANES // 2)
    return start, lane >= LANES // 2, start + width <= length


@jit()
def fill(out, count, value, BLOCK: tl.constexpr):
    """Write the same value everywhere."""
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(out + at, tl.full([BLOCK], value, out.dtype.element_ty), mask=at < count)


@jit()
def empty_charts(charts, size, guard, length, SOFT: tl.constexpr, LANES: tl.constexpr):
    """Charts that hold nothing but 1 for the complete items of width 0.

    The root's left item of width 0 is nothing: no item has it as a part, and a tile that goes one split too far reads it,
    beside a right item that another warp may be writing at that moment.
    """
    m, e = zeros(32 * LANES, SOFT)
    for first in range(-guard, 7 * size + guard, 32 * LANES):
        at = first + tl.arange(0, 32 * LANES)
        store(charts, at, m, e, at < 7 * size + guard, SOFT)
    tl.debug_barrier()
    one, nought = tl.full([LANES], 1.0, SOFT), tl.zeros([LANES], tl.int32)
    for first in range(0, length + 1, LANES):
        start = first + tl.arange(0, LANES)
        store(charts, start, one, nought, start <= length, SOFT)
        store(charts, size + start, one, nought, (start <= length) & (start > 0), SOFT)


@jit()
def arc_target(head, word, pitch, size):
    """Where an arc stands, from the start of the chart of right arcs; a word's own index is the root."""
    right, left = (word - head) * pitch + head + 1, size + (head - word) * pitch + word + 1
    return tl.where(head < word, right, tl.where(head > word, left, (word + 1) * pitch))


@jit()
def load_scores(scores, head, word, length, n):
    """A tile of scores, -inf where there is none, which are real, and which are NaN or +inf."""
    real = (head < length) & (word < length)
    score = tl.load(scores + head * n + word, mask=real, other=float("-inf"))
    garbled = (score != score) | (score == float("inf"))
    return tl.where(garbled, float("-inf"), score), real, garbled


@jit()
def lay_out(scores, length, n, arcs, size, HEADS: tl.constexpr, WORDS: tl.constexpr):
    """Write the scores to the two charts at `arcs`; returns 1 if a score is NaN or +inf, else 0."""
    worst = tl.zeros([HEADS, WORDS], tl.int32)
    for first_head in range(0, length, HEADS):
        for first_word in range(0, length, WORDS):
            head = (first_head + tl.arange(0, HEADS))[:, None]
            word = (first_word + tl.arange(0, WORDS))[None, :]
            score, real, garbled = load_scores(scores, head, word, length, n)
            tl.store(arcs + arc_target(head, word, n + 1, size), score, mask=real)
            worst = worst | garbled.to(tl.int32)
    return tl.max(tl.max(worst, 1), 0)


@jit()
def lay_out_weights(scores, length, n, charts, size, SOFT: tl.constexpr, HEADS: tl.constexpr, WORDS: tl.constexpr):
    """Write the weights exp(score - largest of the column) to the charts of arcs.

    Returns:
        The sum of the largest scores, in their own unit, and 1 if a score is NaN or +inf, else 0.
    """
    worst = tl.zeros([HEADS, WORDS], tl.int32)
    shift = tl.zeros([WORDS], tl.float64)
    for first_word in range(0, length, WORDS):
        word = (first_word + tl.arange(0, WORDS))[None, :]
        top = tl.full([WORDS], float("-inf"), tl.float64)
        for first_head in range(0, length, HEADS):
            head = (first_head + tl.arange(0, HEADS))[:, None]
            score, real, garbled = load_scores(scores, head, word, length, n)
            top = tl.maximum(top, tl.max(score, 0).to(tl.float64))
            worst = worst | garbled.to(tl.int32)
        top = tl.where(top > float("-inf"), top, 0.0)
        shift += top
        for first_head in range(0, length, HEADS):
            head = (first_head + tl.arange(0, HEADS))[:, None]
            score, real, garbled = load_scores(scores, head, word, length, n)
            m, e = from_log2((score.to(tl.float64) - top[None, :]) * 1.4426950408889634, SOFT)  # log2(e)
            # what is forbidden stays nothing
            store(charts, 5 * size + arc_target(head, word, n + 1, size), m, e, real & (score > float("-inf")), SOFT)
    return tl.sum(shift, 0), tl.max(tl.max(worst, 1), 0)


@jit()
def lay_out_direction(direction, scores, length, n, arcs, size, HEADS: tl.constexpr, WORDS: tl.constexpr):
    """Write the direction to the two charts at `arcs`, 0 for what is forbidden."""
    for first_head in range(0, length, HEADS):
        for first_word in range(0, length, WORDS):
            head = (first_head + tl.arange(0, HEADS))[:, None]
            word = (first_word + tl.arange(0, WORDS))[None, :]
            score, real, garbled = load_scores(scores, head, word, length, n)
            slope = tl.load(direction + head * n + word, mask=score > float("-inf"), other=0.0)
            tl.store(arcs + arc_target(head, word, n + 1, size), slope.to(tl.float64), mask=real)
