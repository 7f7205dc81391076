"""Eisner's algorithm on a GPU for sentences of up to 50 words, as part of a larger program, in Triton and in float32.

The root is position 0 and word m position m + 1; README.md names the items. Those from the start i of a span to a split k are
in charts `[i, k]`, those from k to the end j in charts `[j, k]`. As i <= k < j, a square has room for one of either kind. What
is added up for the splits of a span is beside each other, and a thread reads four splits at a time. The spans of one width
are closed together, each by lanes of one warp, and warps wait for each other once per width.

The charts are in shared memory, for which Triton has no language: instructions of the GPU do it. In the interpreter they are
in global memory. In row r, four splits beside each other are exchanged with other four: number c with number c XOR r, so that
the rows that a warp reads together are in different banks.
"""

from __future__ import annotations

from pullback.inference._triton.support import constant, interpreting, jit, tl

LONGEST = 50  # words: their charts, and what Triton needs, are what a kernel may have of shared memory without asking for more
ROWS = constant(LONGEST + 1)
RIGHT, RIGHT_ARC, LEFT = constant(0), constant(1), constant(2)
"""The squares, and their upper halves `[i, k]`: right(i, k), right_arc(i, k), left(i, k)."""
LEFT_AFTER, RIGHT_TO, LEFT_ARC = constant(0), constant(1), constant(2)
"""Their lower halves `[j, k]`: left(k + 1, j), right(k, j), left_arc(k, j)."""
_ON_GPU = constant(not interpreting())


def scratch_of_charts(levels: int) -> int:
    """How many numbers of 32 bits of global memory 2^levels positions need: splits and messages; in the interpreter, charts."""
    return (4 if interpreting() else 1) * 4**levels + 4 * 2**levels


@jit()
def charts_of(scratch, LEVELS: tl.constexpr):
    """Where the charts are: in shared memory, or behind the splits."""
    if _ON_GPU:
        return _shared(0)
    else:
        return scratch.to(tl.pointer_type(tl.float32)) + ((1 << (2 * LEVELS)) + (4 << LEVELS))


@jit(noinline=True)
def _shared(nothing):
    """The address of the charts in shared memory, the same one in all of a kernel: 3 squares of 51 x 64 numbers."""
    return tl.inline_asm_elementwise(
        ".shared .align 16 .b8 charts[39168]; mov.u32 $0, charts;", "=r,r", [nothing], tl.int32, False, 1
    )  # fmt: skip


@jit()
def place(square, row, column, LEVELS: tl.constexpr):
    """Where a number of a chart is."""
    return _row(square, row, LEVELS) + (_four_of(row, column, LEVELS) | (column & 3))


@jit()
def _row(square, row, LEVELS: tl.constexpr):
    rows: tl.constexpr = min(1 << LEVELS, ROWS)
    return (square * rows + tl.minimum(row, rows - 1)) << LEVELS


@jit()
def _four_of(row, column, LEVELS: tl.constexpr):
    """Where in its row the four numbers are that a column is one of; of columns beyond the last, any."""
    last: tl.constexpr = (1 << (LEVELS - 2)) - 1
    return (tl.minimum(column >> 2, last) ^ (row & last)) << 2


@jit()
def spans(scores, charts, splits, length, n, multiroot, FIRST: tl.constexpr, LEVELS: tl.constexpr):
    """Fill the charts and write the splits, `[start, end]`; of several best splits the first one if `FIRST`, else any.

    A tile has as many elements as the program has threads, four per position. If it had fewer, two warps would close the
    same span, and one could read what the other has written already.
    """
    positions: tl.constexpr = 1 << LEVELS
    few: tl.constexpr = min(positions // 4, 4)
    more: tl.constexpr = min(positions // 4, 8)
    all: tl.constexpr = positions // 4
    at = tl.arange(0, positions)
    _lay_out(scores, charts, length, n, LEVELS)
    write(charts, place(RIGHT, at, at, LEVELS), 0.0 * at, at <= length)
    write(charts, place(LEFT_AFTER, at, at - 1, LEVELS), 0.0 * at, (at > 0) & (at <= length))
    tl.debug_barrier()
    for width in range(1, length + 1):
        if width <= 4 * few - 3:
            _close(charts, splits, 0, width, length, multiroot, FIRST, 4 * positions // few, few, LEVELS)
        elif width <= 4 * more - 3:
            for first in range(0, length + 1 - width, 4 * positions // more):
                _close(charts, splits, first, width, length, multiroot, FIRST, 4 * positions // more, more, LEVELS)
        else:
            for first in range(0, length + 1 - width, 4 * positions // all):
                _close(charts, splits, first, width, length, multiroot, FIRST, 4 * positions // all, all, LEVELS)
        tl.debug_barrier()


@jit()
def _lay_out(scores, charts, length, n, LEVELS: tl.constexpr):
    """Write the scores of arcs to the charts of arcs, where items replace them."""
    positions: tl.constexpr = 1 << LEVELS
    block: tl.constexpr = min(positions * positions, 1024)
    for first in range(0, (length + 1) << LEVELS, block):
        at = first + tl.arange(0, block)
        head, word = at >> LEVELS, at & (positions - 1)
        arc = tl.where(head == 0, word - 1, head - 1) * n + word - 1
        inside = (head <= length) & (word <= length)
        score = tl.load(scores + arc, mask=inside & (word > 0), other=float("-inf"))
        square = tl.where(word > head, RIGHT_ARC, LEFT_ARC)
        write(charts, place(square, head, word, LEVELS), score, inside & (word != head))


@jit()
def _close(
    charts, splits, first, width, length, multiroot,
    FIRST: tl.constexpr, STARTS: tl.constexpr, FOURS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Write the items of the spans of a width that begin at a block of starts, and their splits."""
    tl.static_assert(STARTS * FOURS == 4 << LEVELS)  # as many as the program has threads
    group = tl.arange(0, FOURS)[None, :]
    start = first + tl.arange(0, STARTS)[:, None] + 0 * group
    end = start + width
    real = end <= length
    down, up = read(charts, place(RIGHT_ARC, start, end, LEVELS)), read(charts, place(LEFT_ARC, end, start, LEVELS))
    gap, gap_at, right, right_at, left, left_at = _best(charts, start, end, group, FIRST, FOURS, LEVELS)
    down, up = gap + down, gap + up
    right_at, left_at = tl.where(down > right, width - 1, right_at - start - 1), tl.where(left > up, left_at - start, 0)
    gap_at, right_at, left_at = (
        _within(gap_at - start, width), _within(right_at, width), _within(left_at, width)
    )  # fmt: skip
    open_end = (start > 0) | (multiroot != 0) | (width == length)  # no gap between two children of the root
    right, left = tl.where(open_end, tl.maximum(down, right), float("-inf")), tl.maximum(up, left)
    real = real & (group == 0)
    write(charts, place(RIGHT, start, end, LEVELS), right, real)
    write(charts, place(RIGHT_ARC, start, end, LEVELS), down, real)
    write(charts, place(LEFT, start, end, LEVELS), left, real)
    write(charts, place(LEFT_AFTER, end, start - 1, LEVELS), left, real & (start > 0))
    write(charts, place(RIGHT_TO, end, start, LEVELS), right, real)
    write(charts, place(LEFT_ARC, end, start, LEVELS), up, real)
    _write_split(splits + (start << LEVELS) + end, packed(gap_at, right_at, left_at), real)


@jit()
def _within(split, width):
    """A split of spans of this width. Where all sums are -inf none was chosen, and what stands there may lie outside: it would
    spill into the other splits of the span, as they are packed into one number.
    """
    return tl.minimum(tl.maximum(split, 0), width - 1)


@jit()
def _best(charts, start, end, group, FIRST: tl.constexpr, FOURS: tl.constexpr, LEVELS: tl.constexpr):
    """The best sums for the gap, right and left of spans, and their splits: those of each lane, then of a span's lanes."""
    split = 4 * group + (start // 4 * 4 if 4 * FOURS < (1 << LEVELS) else 0 * start)
    near, far = _four_of(start, split, LEVELS), _four_of(end, split, LEVELS)
    gap, gap_at = _best_of_four(charts, RIGHT, near, far, split, start, start, end, LEVELS)
    right, right_at = _best_of_four(charts, RIGHT_ARC, near, far, split, start, start + 1, end, LEVELS)
    left, left_at = _best_of_four(charts, LEFT, near, far, split, start, start + 1, end, LEVELS)
    found = gap, gap_at, right, right_at, left, left_at
    return tl.reduce(found, 1, _larger_or_first if FIRST else larger, keep_dims=True)


@jit()
def _best_of_four(charts, square: tl.constexpr, near, far, split, start, least, end, LEVELS: tl.constexpr):
    """The best sum of the halves of a square for splits from the least to before the end, and where it is."""
    a, b, c, d = _four(charts, _row(square, start, LEVELS) + near)
    e, f, g, h = _four(charts, _row(square, end, LEVELS) + far)
    best = tl.where((split >= least) & (split < end), a + e, float("-inf"))
    best, at = _better(b + f, split + 1, best, split, least, end)
    best, at = _better(c + g, split + 2, best, at, least, end)
    return _better(d + h, split + 3, best, at, least, end)


@jit()
def _better(total, split, best, at, least, end):
    """The better of the best sum so far and another one, if its split is one; of equal ones the first."""
    better = (total > best) & (split >= least) & (split < end)
    return tl.where(better, total, best), tl.where(better, split, at)


@jit()
def larger(a, a_at, b, b_at, c, c_at, other_a, other_a_at, other_b, other_b_at, other_c, other_c_at):
    """The larger of each pair of values, with what belongs to it; of equal ones either."""
    keep_a, keep_b, keep_c = a >= other_a, b >= other_b, c >= other_c
    a, a_at = tl.where(keep_a, a, other_a), tl.where(keep_a, a_at, other_a_at)
    b, b_at = tl.where(keep_b, b, other_b), tl.where(keep_b, b_at, other_b_at)
    c, c_at = tl.where(keep_c, c, other_c), tl.where(keep_c, c_at, other_c_at)
    return a, a_at, b, b_at, c, c_at


@jit()
def _larger_or_first(a, a_at, b, b_at, c, c_at, other_a, other_a_at, other_b, other_b_at, other_c, other_c_at):
    """The larger of each pair of values, with its place; of equal ones the one whose place is smaller."""
    keep_a = (a > other_a) | ((a == other_a) & (a_at < other_a_at))
    keep_b = (b > other_b) | ((b == other_b) & (b_at < other_b_at))
    keep_c = (c > other_c) | ((c == other_c) & (c_at < other_c_at))
    a, a_at = tl.where(keep_a, a, other_a), tl.where(keep_a, a_at, other_a_at)
    b, b_at = tl.where(keep_b, b, other_b), tl.where(keep_b, b_at, other_b_at)
    c, c_at = tl.where(keep_c, c, other_c), tl.where(keep_c, c_at, other_c_at)
    return a, a_at, b, b_at, c, c_at


@jit()
def _four(charts, at):
    """Four numbers beside each other."""
    if _ON_GPU:
        return tl.inline_asm_elementwise(
            "ld.shared.v4.f32 {$0, $1, $2, $3}, [$4];",
            "=f,=f,=f,=f,r",
            [charts + 4 * at],
            (tl.float32, tl.float32, tl.float32, tl.float32),
            False,
            1,
        )
    else:
        return tl.load(charts + at), tl.load(charts + at + 1), tl.load(charts + at + 2), tl.load(charts + at + 3)


@jit()
def read(charts, at):
    """Numbers of the charts."""
    if _ON_GPU:
        return tl.inline_asm_elementwise("ld.shared.f32 $0, [$1];", "=f,r", [charts + 4 * at], tl.float32, False, 1)
    else:
        return tl.load(charts + at)


@jit()
def write(charts, at, value, mask):
    """Write numbers of the charts."""
    if _ON_GPU:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.b32 p, $3, 0; @p st.shared.f32 [$1], $2; mov.b32 $0, 0; }",
            "=r,r,f,r",
            [charts + 4 * at, value.to(tl.float32), mask.to(tl.int32)],
            tl.int32,
            False,
            1,
        )
    else:
        tl.store(charts + at, value, mask=mask)


# With its own loads and stores, Triton would move the tiles to other threads and back.


@jit()
def _write_split(pointer, value, mask):
    if _ON_GPU:
        tl.inline_asm_elementwise(
            "{ .reg .pred p; setp.ne.b32 p, $3, 0; @p st.global.b32 [$1], $2; mov.b32 $0, 0; }",
            "=r,l,r,r",
            [pointer.to(tl.int64), value, mask.to(tl.int32)],
            tl.int32,
            False,
            1,
        )
    else:
        tl.store(pointer, value, mask=mask)


@jit()
def packed(gap, right, left):
    """The splits of spans in one number each."""
    return gap | (right << 10) | (left << 20)


@jit()
def unpacked(splits, at, mask, which: tl.constexpr):
    """The splits of spans: of their gaps (0), their right items (1) or their left ones (2)."""
    return (tl.load(splits + at, mask=mask, other=0) >> (which * 10)) & 1023


@jit()
def follow(length, splits, LEVELS: tl.constexpr):
    """The head of each position, from the top: in a round every position that has one finds its outermost child on either side.

    A position knows where its right item ends and where its left item starts; it tells the child its own. A message bears
    the number of its round, and rounds take turns with the two halves of `told`: so one barrier a round is enough, as
    nobody writes to a half before all have read what they were told there.
    """
    positions: tl.constexpr = 1 << LEVELS
    bits: tl.constexpr = LEVELS + 1
    told = splits + (1 << (2 * LEVELS))
    at = tl.arange(0, positions)
    inside = at <= length
    tl.store(told + at, tl.full([positions], -1, tl.int32))
    tl.store(told + positions + at, tl.full([positions], -1, tl.int32))
    tl.debug_barrier()
    above, left, right = at, at, tl.where(at == 0, length, at)
    turn, going = length * 0, length
    while going > 0:
        for half in tl.static_range(2):  # two rounds for each look at whether there is more to do
            down, up = inside & (right > at), inside & (left < at)
            child = at + 1 + unpacked(splits, (at << LEVELS) + right, down, 1)
            left_child = left + unpacked(splits, (left << LEVELS) + at, up, 2)
            gap = at + unpacked(splits, (at << LEVELS) + child, down, 0)
            left_gap = left_child + unpacked(splits, (left_child << LEVELS) + at, up, 0)
            sender = ((turn << bits) + at) << (2 * bits)
            tl.store(told + half * positions + child, sender + ((right << bits) + gap + 1), mask=down)
            tl.store(told + half * positions + left_child, sender + ((left_gap << bits) + left), mask=up)
            tl.debug_barrier()
            message = tl.load(told + half * positions + at)
            new = (message >> (3 * bits)) == turn
            above = tl.where(new, (message >> (2 * bits)) & ((1 << bits) - 1), above)
            right = tl.where(new, (message >> bits) & ((1 << bits) - 1), tl.where(down, gap, right))
            left = tl.where(new, message & ((1 << bits) - 1), tl.where(up, left_gap + 1, left))
            turn += 1
        going = tl.max((inside & ((right > at) | (left < at))).to(tl.int32), 0)
    return above
