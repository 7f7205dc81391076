"""Viterbi's algorithm on the CPU, one example at a time: the tags of a position are the lanes of SIMD vectors."""

from __future__ import annotations

import numpy as np

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import aligned, lanes_in, larger, load, load_half, splat, splat_half, store
from pullback.inference._numba.packing import clear
from pullback.inference._numba.rows import AHEAD, any_nonzero, count_nan, load_first, prefetch
from pullback.inference._numba.vectors import raised, widen


@subroutine
def _climb(scores, begin, length, tags, values, room, z):
    """Write the value of the best sequence that ends with each tag at each position; returns whether NaN may have been read.

    Zeros are written to `z` on the way, which costs less than to do so apart.
    """
    zero, half_zero = splat(scores, 0.0), splat_half(scores, 0.0)
    nan, half_nan = zero, half_zero  # sums of scores: NaN if one of them is
    for b in range(tags):
        values[b] = np.float64(scores[begin + b])
        nan = nan + splat(scores, scores[begin + b])
    for i in range(1, length):
        at = begin + i * tags * tags
        clear(z, at, at + tags * tags)
        nan, half_nan = step(scores, at, tags, values, (i - 1) * room, values, i * room, nan, half_nan)
    return any_nonzero(count_nan(nan, zero)) or any_nonzero(count_nan(half_nan, half_zero))


@subroutine
def step(scores, at, tags, values, now, found, then, nan, half_nan):
    """Write the largest sums of a value and a score for all tags of a position; returns NaN for NaN, in two vectors.

    The last vector of a row overlaps the one before, or is half a vector, or has lanes that are not in use.
    """
    lanes = lanes_in(scores)
    whole, width = tags - tags % lanes, tags % lanes
    for k in range(0, whole, lanes):
        nan = _column(scores, at + k, lanes, tags, values, now, found, then + k, nan)
    if whole > 0 and width > lanes // 2:
        nan = _column(scores, at + tags - lanes, lanes, tags, values, now, found, then + tags - lanes, nan)
    elif (whole > 0 and width > 0) or width == lanes // 2:
        k, half_most = tags - lanes // 2, widen(splat_half(scores, -np.inf))
        for a in range(tags):
            x = load_half(scores, at + a * tags + k)
            half_nan = half_nan + x
            half_most = larger(raised(widen(x), values[now + a]), half_most)
        store(found, then + k, half_most)
    elif width > 0:
        nan = _column(scores, at, width, tags, values, now, found, then, nan)
    return nan, half_nan


@subroutine
def _column(scores, at, width, tags, values, now, found, then, nan):
    """The largest sums of a vector of tags; returns `nan` plus its scores."""
    most, least, full = widen(splat(scores, -np.inf)), splat(scores, -np.inf), width == lanes_in(scores)
    for a in range(tags):
        x = load(scores, at + a * tags) if full else load_first(scores, at + a * tags, width, least)
        prefetch(scores, at + a * tags + AHEAD)
        nan = nan + x
        most = larger(raised(widen(x), values[now + a]), most)
    store(found, then, most)
    return nan


@subroutine
def _follow(scores, begin, length, tags, values, room, tag, z):
    """From the last tag back: the first tag whose value and score make the next one's value."""
    for i in range(length - 1, -1, -1):
        at, before = begin + i * tags * tags + tag, 0
        if i > 0:
            before = first_before(scores, at, tags, values, (i - 1) * room, values[i * room + tag])
        z[at + before * tags] = 1.0
        tag = before


@subroutine
def first_before(scores, at, tags, values, row, goal):
    """The first tag whose value and score, of those a row of `tags` apart, make the goal; the last one if none does."""
    before = 0
    while before < tags - 1 and values[row + before] + scores[at + before * tags] != goal:
        before += 1
    return before


@subroutine
def best_tag(tags, values, row):
    """The first of the tags with the largest value."""
    tag = 0
    for c in range(1, tags):
        if values[row + c] > values[row + tag]:
            tag = c
    return tag


@kernel
def argmax(worker, workers, tags, scores, lengths, z, best, codes):
    """Write the best structures, and their scores. Ties: from the last position back, the first tag."""
    cells, lanes = tags * tags, lanes_in(scores)
    n, room = scores.shape[1], -(-tags // lanes) * lanes
    flat, flat_z, values = scores.reshape(-1), z.reshape(-1), aligned(n * room, np.empty(0))
    for b in range(worker, len(scores), workers):
        length, begin = min(max(lengths[b], 0), n), b * n * cells
        codes[b] = lengths[b] != length
        clear(flat_z, begin, begin + min(length, 1) * cells)
        clear(flat_z, begin + length * cells, begin + n * cells)
        if length == 0:
            continue
        codes[b] |= _climb(flat, begin, length, tags, values, room, flat_z)
        last = (length - 1) * room
        tag = best_tag(tags, values, last)
        best[b] = values[last + tag]
        feasible = -np.inf < best[b] < np.inf
        codes[b] |= not feasible
        if feasible:
            _follow(flat, begin, length, tags, values, room, tag, flat_z)
