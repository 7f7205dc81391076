"""Numbers of several examples side by side in SIMD lanes, and back."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import inner, subroutine
from pullback.inference._numba.lanes import bad_score, gather, lanes_in, larger, load, splat, store
from pullback.inference._numba.rows import store_first
from pullback.inference._numba.vectors import pack_block, unpack_block


@inner
def pack(array, bases, count, packed):
    """Put the numbers `array.flat[bases[lane] : bases[lane] + count]` of all lanes side by side.

    The last vector of `packed`, the score of no part, becomes 0, however few numbers are needed.
    """
    lanes = lanes_in(packed)
    whole = count - count % lanes
    for at in range(0, whole, lanes):
        pack_block(array, bases, at, packed, at * lanes)
    for at in range(whole, count):
        store(packed, at * lanes, gather(array, bases, at))
    store(packed, len(packed) - lanes, splat(array, 0.0))


@inner
def by_length(lengths, longest, lanes):
    """The examples by falling length, and their lengths; the last one fills up the last group of `lanes` examples.

    Lengths that are not from 0 to `longest` count as the nearest that is.
    """
    count, filled = len(lengths), -(-len(lengths) // lanes) * lanes
    order, sizes, place = np.empty(filled, np.int64), np.empty(filled, np.int64), np.zeros(longest + 2, np.int64)
    for b in range(count):
        place[longest - min(max(lengths[b], 0), longest) + 1] += 1
    for k in range(longest):
        place[k + 1] += place[k]
    for b in range(count):
        size = min(max(lengths[b], 0), longest)
        at = place[longest - size]
        order[at], sizes[at], place[longest - size] = b, size, at + 1
    for at in range(count, filled):
        order[at], sizes[at] = order[count - 1], sizes[count - 1]
    return order, sizes


@inner
def check(packed, count, codes):
    """Write a code for each lane that says what is wrong with its numbers."""
    lanes, worst = lanes_in(packed), splat(packed, 0.0)
    for at in range(count):
        worst = larger(bad_score(load(packed, at * lanes)), worst)
    store(codes, 0, worst)


@inner
def unpack(packed, bases, filled, count, out):
    """Write `count` numbers of the first lanes to their examples: the reverse of `pack`."""
    lanes = lanes_in(packed)
    whole = count - count % lanes if filled == lanes else 0
    for at in range(0, whole, lanes):
        unpack_block(packed, at * lanes, out, bases, at)
    for at in range(whole, count):
        for lane in range(filled):
            out[bases[lane] + at] = packed[at * lanes + lane]


@subroutine
def clear(out, start, stop):
    """Write zeros, by vectors: for large memory, C's way takes longer."""
    lanes = lanes_in(out)
    for p in range(start, stop, lanes):
        if p + lanes <= stop:
            store(out, p, splat(out, 0.0))
        else:
            store_first(out, p, stop - p, splat(out, 0.0))
