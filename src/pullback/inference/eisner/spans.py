"""Eisner's algorithm for one sentence: the spans of a width side by side in SIMD lanes.

The root is position 0 and word m position m + 1, so that its items are those of any other word: README.md's prefix(j) is
right(0, j), its root_arc(r) the right arc from 0 to r + 1. A chart is `[width, start]`, flat, with `pitch` numbers a width:
the two halves of a split, for spans of one width that start next to each other, stand next to each other too. A vector
reads beyond the last span of a width, and never uses what it finds there.

For one sentence at a time this takes about as long as `maximum.py` does for each of a group that fills its lanes.
"""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import called, subroutine
from pullback.inference._numba.lanes import (
    BYTES,
    larger,
    load_half,
    splat_half,
    splat_index,
    store,
    store_index,
    where_larger,
)
from pullback.inference._numba.scratch import carve

_MOST_LANES = BYTES // 2 // 4


@subroutine
def pitch_of(length):
    """Numbers from one width to the next: a vector may start at each of the positions."""
    return (length // _MOST_LANES + 2) * _MOST_LANES


@subroutine
def place_of(head, word, length):
    """Where the scores have an arc: right arcs first, then left ones, each by width and start."""
    pitch = pitch_of(length)
    if head == word:
        return (word + 1) * pitch
    if head < word:
        return (word - head) * pitch + head + 1
    return (length + 1 + head - word) * pitch + word + 1


@subroutine
def workspace(work, n, dtype):
    """The arrays of `best_heads` for up to n words, from `8 * numbers_for(n)` bytes of zeros, and where they end."""
    size = (n + 1) * pitch_of(n)
    right, at = carve(work, 0, size, dtype)
    left, at = carve(work, at, size, dtype)
    right_arc, at = carve(work, at, size, dtype)
    left_arc, at = carve(work, at, size, dtype)
    gaps, at = carve(work, at, _MOST_LANES, dtype)
    splits, at = carve(work, at, 3 * size, np.int16)
    stack, at = carve(work, at, 2 * (2 * n + 4), np.int64)
    return (right, left, right_arc, left_arc, gaps, splits.reshape(3, size), stack.reshape(2 * n + 4, 2)), at


def numbers_for(n: int) -> int:
    """Room for all of it, and for the heads of n words."""
    return 5 * (n + 1) * (n + 2 * _MOST_LANES) + 5 * n + 8 * 9 + 16


@called
def best_heads(scores, length, multiroot, work, heads):
    """Write the heads of a best tree, a word's own index for the root; ties break as `DependencyTree` says.

    Scores are flat, by `place_of`: finite, or -inf, as for left arcs that end at the root. Returns whether there is a tree;
    otherwise the heads mean nothing.
    """
    right, left, right_arc, left_arc, gaps, splits, stack = work
    pitch, lanes = pitch_of(length), BYTES // 2 // scores.itemsize
    for start in range(0, length + 1, lanes):
        store(right, start, splat_half(scores, 0.0))
        store(left, start, splat_half(scores, 0.0))
    for width in range(1, length + 1):
        for start in range(0, length + 1 - width, lanes):
            _fill(right, left, right_arc, left_arc, gaps, scores, splits, pitch, length, width, start, multiroot)
    exists = right[length * pitch] > -np.inf
    if exists:
        _follow(length, pitch, splits, stack, heads)
    return exists


@subroutine
def _fill(right, left, right_arc, left_arc, gaps, scores, splits, pitch, length, width, start, multiroot):
    """The items of the spans of a width that start at `start` and behind, as many as a vector holds."""
    at = width * pitch + start
    gap = to_right = to_left = splat_half(scores, -np.inf)
    gap_at = right_at = left_at = splat_index(gap, 0)
    # from the right, so that what was written last is read last: until then it is on its way to the cache
    for split in range(width - 1, 0, -1):
        near, far = split * pitch + start, (width - split) * pitch + start + split
        index = splat_index(gap, split)
        value = load_half(right, near) + load_half(left, far - pitch + 1)
        gap_at, gap = where_larger(gap, value, gap_at, index), larger(gap, value)
        value = load_half(right_arc, near) + load_half(right, far)
        right_at, to_right = where_larger(to_right, value, right_at, index), larger(to_right, value)
        value = load_half(left, near) + load_half(left_arc, far)
        left_at, to_left = where_larger(to_left, value, left_at, index), larger(to_left, value)
    value = load_half(right, start) + load_half(left, (width - 1) * pitch + start + 1)
    gap_at, gap = where_larger(gap, value, gap_at, splat_index(gap, 0)), larger(gap, value)
    store_index(splits[0], at, gap_at)
    if start == 0 and not multiroot:  # nothing stands between the root and its only child but what that child has
        store(gaps, 0, gap)
        gaps[0], splits[0, at] = left[(width - 1) * pitch + 1], 0
        gap = load_half(gaps, 0)
    down, up = gap + load_half(scores, at), gap + load_half(scores, at + (length + 1) * pitch)
    store(right_arc, at, down)
    store(left_arc, at, up)
    right_at = where_larger(down, to_right, splat_index(gap, width), right_at)
    left_at = where_larger(to_left, up, left_at, splat_index(gap, 0))
    store(right, at, larger(down, to_right))
    store(left, at, larger(to_left, up))
    store_index(splits[1], at, right_at)
    store_index(splits[2], at, left_at)


@subroutine
def _follow(length, pitch, splits, stack, heads):
    """Build the tree from its splits; the stack holds (from, to) of items, right ones if from < to."""
    stack[0, 0], stack[0, 1] = 0, length
    top = 1
    while top > 0:
        top -= 1
        head, end = stack[top, 0], stack[top, 1]
        if head == end:
            continue
        low, high = min(head, end), max(head, end)
        at = (high - low) * pitch + low
        child = low + splits[1 if head < end else 2, at]
        heads[child - 1] = child - 1 if head == 0 else head - 1
        stack[top, 0], stack[top, 1] = child, end
        low, high = min(head, child), max(head, child)
        split = low + splits[0, (high - low) * pitch + low]
        stack[top + 1, 0], stack[top + 1, 1] = low, split
        stack[top + 2, 0], stack[top + 2, 1] = high, split + 1
        top += 3
