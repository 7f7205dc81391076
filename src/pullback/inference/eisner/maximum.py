"""Eisner's algorithm in SIMD lanes: the best projective trees of several sentences at once.

README.md names the items. A chart `complete[i, j]` holds the right item of the span for i < j and the left item below
the diagonal; `arc[h, m]` the item whose arc goes from h to m. Splits are kept as int16.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, INFINITE, NAN
from pullback.inference.compile import called, lean_kernel
from pullback.inference.eisner.packing import clear, lanes_of, pack, pitch_of
from pullback.inference.lanes import larger, load, splat, splat_index, store, store_index, where_larger
from pullback.inference.scratch import carve


@lean_kernel
def argmax(worker, workers, scores, lengths, order, multiroot, scratch, z, status):
    """Write the best trees of `[B, n, n]` scores as 0/1 matrices; a status other than OK leaves zeros."""
    n, lanes, dtype = scores.shape[-1], lanes_of(scores), scores.dtype
    first = worker * lanes
    if first >= len(order):
        return
    largest, work = lengths[order[first]], scratch[worker]
    square, line = largest * pitch_of(largest) * lanes, (largest + 1) * lanes
    packed, at = carve(work, 0, square, dtype)
    complete, at = carve(work, at, square, dtype)
    arc, at = carve(work, at, square, dtype)
    root, at = carve(work, at, 2 * line, dtype)
    gaps, at = carve(work, at, square, np.int16)
    rights, at = carve(work, at, square, np.int16)
    lefts, at = carve(work, at, square, np.int16)
    starts, at = carve(work, at, line, np.int16)
    ends, at = carve(work, at, line, np.int16)
    lane_lengths, at = carve(work, at, lanes, dtype)
    codes, at = carve(work, at, lanes, dtype)
    bases, at = carve(work, at, lanes, np.int64)
    stack, at = carve(work, at, 4 * largest + 8, np.int64)  # a word heads at most one item a side
    splits = gaps, rights, lefts
    for group in range(first, len(order), workers * lanes):
        size = pack(scores, n, order, group, lengths, packed, lane_lengths, bases, codes)
        _spans(packed, size, lanes, complete, arc, splits)
        _root(packed, size, lanes, multiroot, complete, root, (starts, ends))
        for lane in range(min(lanes, len(order) - group)):
            sentence = order[group + lane]
            for h in range(n):
                clear(z, sentence, h, 0)
            if codes[lane] > 0:
                status[sentence] = INFINITE if codes[lane] == 1 else NAN
            elif root[lengths[sentence] * lanes + lane] == -np.inf:
                status[sentence] = INFEASIBLE
            else:
                _trace(lengths[sentence], pitch_of(size), lanes, lane, splits, (starts, ends), stack, z, sentence)


@called
def _spans(scores, n, lanes, complete, arc, splits):
    pitch = pitch_of(n)
    row = pitch * lanes
    for j in range(n):
        store(complete, j * row + j * lanes, splat(scores, 0.0))
        for i in range(j - 1, -1, -1):
            best = load(complete, i * row + i * lanes) + load(complete, j * row + (i + 1) * lanes)
            at = splat_index(best, i)
            for k in range(i + 1, j):
                value = load(complete, i * row + k * lanes) + load(complete, j * row + (k + 1) * lanes)
                at = where_larger(value, best, splat_index(best, k), at)
                best = larger(value, best)
            store_index(splits[0], i * row + j * lanes, at)
            right_arc = best + load(scores, i * row + j * lanes)
            left_arc = best + load(scores, j * row + i * lanes)
            store(arc, i * row + j * lanes, right_arc)
            store(arc, j * row + i * lanes, left_arc)
            # right items end with the split k = j and left items begin with k = i: their arcs are at hand
            left = load(complete, i * row + i * lanes) + left_arc
            left_at = splat_index(left, i)
            if j == i + 1:
                right = right_arc + load(complete, j * row + j * lanes)
                right_at = splat_index(right, j)
            else:
                right = load(arc, i * row + (i + 1) * lanes) + load(complete, (i + 1) * row + j * lanes)
                right_at = splat_index(right, i + 1)
                for k in range(i + 1, j - 1):
                    value = load(arc, i * row + (k + 1) * lanes) + load(complete, (k + 1) * row + j * lanes)
                    right_at = where_larger(value, right, splat_index(right, k + 1), right_at)
                    right = larger(value, right)
                    value = load(complete, k * row + i * lanes) + load(arc, j * row + k * lanes)
                    left_at = where_larger(value, left, splat_index(left, k), left_at)
                    left = larger(value, left)
                value = right_arc + load(complete, j * row + j * lanes)
                right_at = where_larger(value, right, splat_index(right, j), right_at)
                right = larger(value, right)
                value = load(complete, (j - 1) * row + i * lanes) + load(arc, j * row + (j - 1) * lanes)
                left_at = where_larger(value, left, splat_index(left, j - 1), left_at)
                left = larger(value, left)
            store(complete, i * row + j * lanes, right)
            store(complete, j * row + i * lanes, left)
            store_index(splits[1], i * row + j * lanes, right_at)
            store_index(splits[2], i * row + j * lanes, left_at)


@called
def _root(scores, n, lanes, multiroot, complete, root, splits):
    """`root[j]`: the best way to attach the first j words; behind it, the best that ends with a root arc to r."""
    row = pitch_of(n) * lanes
    arcs = (n + 1) * lanes
    store(root, 0, splat(scores, 0.0))
    for r in range(n):
        best = load(root, 0) + load(complete, r * row)
        at = splat_index(best, 0)
        if multiroot:
            for i in range(1, r + 1):
                value = load(root, i * lanes) + load(complete, r * row + i * lanes)
                at = where_larger(value, best, splat_index(best, i), at)
                best = larger(value, best)
        store(root, arcs + r * lanes, best + load(scores, r * row + r * lanes))
        store_index(splits[0], r * lanes, at)
        best = load(root, arcs) + load(complete, r * lanes)
        at = splat_index(best, 0)
        for k in range(1, r + 1):
            value = load(root, arcs + k * lanes) + load(complete, k * row + r * lanes)
            at = where_larger(value, best, splat_index(best, k), at)
            best = larger(value, best)
        store(root, (r + 1) * lanes, best)
        store_index(splits[1], (r + 1) * lanes, at)


@called
def _trace(length, pitch, lanes, lane, splits, root_splits, stack, z, sentence):
    """Follow the splits of one lane; the stack holds (row, column) of complete items, right ones if row < column."""
    gaps, rights, lefts = splits
    starts, ends = root_splits
    top, j = 0, length
    while j > 0:
        r = ends[j * lanes + lane]
        z[sentence, r, r] = 1.0
        start = starts[r * lanes + lane]
        stack[top], stack[top + 1], stack[top + 2], stack[top + 3] = r, j - 1, r, start
        top, j = top + 4, start
        while top > 0:
            top -= 2
            row, column = stack[top], stack[top + 1]
            if row == column:
                continue
            low, high = min(row, column), max(row, column)
            at = (low * pitch + high) * lanes + lane
            k = rights[at] if row < column else lefts[at]
            z[sentence, row, k] = 1.0
            stack[top], stack[top + 1] = k, column
            low, high = min(row, k), max(row, k)
            split = gaps[(low * pitch + high) * lanes + lane]
            stack[top + 2], stack[top + 3], stack[top + 4], stack[top + 5] = low, split, high, split + 1
            top += 6
