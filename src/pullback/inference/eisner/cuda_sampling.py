"""Exact samples of projective trees on a GPU: top-down from the inside chart, in Triton, one program a sentence.

The draws come in the order of reference.py from the stream of random.py, so that a seed gives the same tree on every backend.
"""

from __future__ import annotations

from pullback.inference._triton.support import jit, tl
from pullback.inference.eisner.cuda_inside import inside
from pullback.inference.eisner.cuda_layout import (
    beyond,
    chart_sizes,
    charts_of,
    empty_charts,
    fill,
    lay_out_weights,
    length_of,
)
from pullback.inference.eisner.cuda_numbers import load, power


@jit(do_not_specialize=["batch", "n", "multiroot"])
def sample(
    scores, lengths, seeds, z, scratch, stack, batch, n, multiroot,
    ROWS: tl.constexpr, LANES: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """Draw a tree for each sentence of `[B, n, n]` scores, as 0/1 matrices; NaN where there is none.

    Args:
        scores: `[B, n, n]`.
        lengths: `[B]`.
        seeds: `[B]`, int64.
        z: `[B, n, n]`, to write.
        scratch: charts of int64 for each program, two elements a number.
        stack: scratch, (n + 1)^2 of int32 a program.
        batch: B.
        n: the size of the scores.
        multiroot: whether several words may attach to the root.
        ROWS: splits looked at together.
        LANES: spans looked at together, on both sides.
        TERMS: a power of two, at least n.
    """
    size, guard = chart_sizes(n, ROWS, LANES)
    charts = charts_of(scratch, size, guard, 2)
    stack += tl.program_id(0).to(tl.int64) * (n + 1) * (n + 1)
    for sentence in range(tl.program_id(0), batch, tl.num_programs(0)):
        matrix = tl.cast(sentence, tl.int64) * n * n
        length = length_of(lengths, sentence, n)
        fill(z + matrix, n * n, 0.0, 32 * LANES)
        empty_charts(charts, size, guard, length, tl.float64, LANES)
        shift, garbled = lay_out_weights(scores + matrix, length, n, charts, size, tl.float64, 32, LANES // 2)
        tl.debug_barrier()
        for width in range(1, length + 1):
            inside(width, length, n + 1, multiroot, charts, charts, size, 0, tl.float64, ROWS, LANES)
            tl.debug_barrier()
        m, e = load(charts, length * (n + 1), 0, True, tl.float64)
        if (garbled == 0) & (m > 0.0) & (beyond(lengths, sentence, n) == 0):
            seed = tl.load(seeds + sentence)
            todo, drawn = _draw_roots(length, n, seed, charts, size, stack, z + matrix, TERMS)
            while todo > 0:
                todo, drawn = _draw_item(todo, drawn, n, seed, charts, size, stack, z + matrix, TERMS)
        else:
            fill(z + matrix, n * n, float("nan"), 32 * LANES)
        tl.debug_barrier()


@jit()
def _draw_roots(length, n, seed, charts, size, stack, z, TERMS: tl.constexpr):
    """Draw the words below the root from the last to the first; the items below them go on the stack."""
    pitch = n + 1
    end, todo, drawn = length, 0, 0
    while end > 0:
        split, drawn = _right_split(charts, size, 0, end, pitch, seed, drawn, TERMS)
        tl.store(z + split * n + split, 1.0)
        word = split + 1
        gap, drawn = _gap(charts, size, 0, word, pitch, seed, drawn, TERMS)
        _push(stack, todo, word, end, pitch)
        _push(stack, todo + 1, word, gap + 1, pitch)
        todo += 2
        end = gap
    tl.debug_barrier()
    return todo, drawn


@jit()
def _draw_item(todo, drawn, n, seed, charts, size, stack, z, TERMS: tl.constexpr):
    """Take an item, given by its head and its other end, from the stack; draw its arc and the arc's gap."""
    pitch = n + 1
    todo -= 1
    item = tl.load(stack + todo)
    head, other = item // pitch, item % pitch
    if head != other:
        if head < other:
            split, drawn = _right_split(charts, size, head, other, pitch, seed, drawn, TERMS)
            word = head + 1 + split
        else:
            split, drawn = _left_split(charts, size, other, head, pitch, seed, drawn, TERMS)
            word = other + split
        tl.store(z + (head - 1) * n + word - 1, 1.0)
        low, high = tl.minimum(head, word), tl.maximum(head, word)
        gap, drawn = _gap(charts, size, low, high, pitch, seed, drawn, TERMS)
        tl.debug_barrier()
        _push(stack, todo, word, other, pitch)
        _push(stack, todo + 1, high, low + gap + 1, pitch)
        _push(stack, todo + 2, low, low + gap, pitch)
        todo += 3
        tl.debug_barrier()
    return todo, drawn


@jit()
def _push(stack, at, head, other, pitch):
    tl.store(stack + at, (head * pitch + other).to(tl.int32))


@jit()
def _right_split(charts, size, start, end, pitch, seed, drawn, TERMS: tl.constexpr):
    """The split of a right item: its arc, and the right item of the arc's word."""
    width = end - start
    arc, rest = 2 * size + pitch + start, (width - 1) * pitch + start + 1
    return _choose(charts, arc, rest, pitch, width, seed, drawn, TERMS)


@jit()
def _left_split(charts, size, start, end, pitch, seed, drawn, TERMS: tl.constexpr):
    """The split of a left item: the left item of an arc's word, and the arc."""
    width = end - start
    return _choose(charts, size + start, 3 * size + width * pitch + start, pitch, width, seed, drawn, TERMS)


@jit()
def _gap(charts, size, start, end, pitch, seed, drawn, TERMS: tl.constexpr):
    """The gap between two heads."""
    width = end - start
    return _choose(charts, start, size + (width - 1) * pitch + start + 1, pitch, width, seed, drawn, TERMS)


@jit()
def _choose(charts, a, b, pitch, count, seed, drawn, TERMS: tl.constexpr):
    """Draw t < count with probability proportional to the product of the items; a grows in width with t, b shrinks."""
    t = tl.arange(0, TERMS)
    used = t < count
    m, e = load(charts, a, t * pitch, used, tl.float64)
    other_m, other_e = load(charts, b, t * (1 - pitch), used, tl.float64)
    e = tl.where(used, e + other_e, -(2**28))
    p = tl.where(used, m * other_m * power(e - tl.max(e, 0), tl.float64), 0.0)
    u, drawn = _uniform(seed, drawn)
    below = tl.cumsum(p, 0)
    first = tl.min(tl.where((p > 0.0) & (below > u * tl.sum(p, 0)), t, TERMS), 0)
    last = tl.max(tl.where(p > 0.0, t, 0), 0)
    return tl.minimum(first, last), drawn


@jit()
def _uniform(seed, drawn):
    """The next float64 in [0, 1) of the stream of an int64 seed, after `drawn` numbers, and the new count."""
    drawn += 1
    x = seed.to(tl.uint64, bitcast=True) + tl.cast(drawn, tl.uint64) * 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    x = x ^ (x >> 31)
    return (x >> 11).to(tl.float64) * 1.1102230246251565e-16, drawn  # 2^-53
