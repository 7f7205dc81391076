"""Eisner's algorithm in SIMD lanes: the best projective trees of several sentences at once.

README.md names the items. A chart `complete[i, j]` holds the right item of the span for i < j and the left item below
the diagonal; `arc[h, m]` the item whose arc goes from h to m. Splits are kept as int16.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, INFINITE, NAN
from pullback.inference.compile import called, inner, kernel
from pullback.inference.eisner.packing import clear, lanes_of, pack, pitch_of
from pullback.inference.lanes import aligned, larger, load, splat, splat_index, store, store_index, where_larger


@kernel
def argmax(worker, workers, scores, lengths, order, multiroot, z, status):
    """Write the best trees of `[B, n, n]` scores as 0/1 matrices; a status other than OK leaves zeros."""
    n = scores.shape[-1]
    lanes = lanes_of(scores)
    first = worker * lanes
    if first >= len(order):
        return
    largest = lengths[order[first]]
    packed = aligned(largest * pitch_of(largest) * lanes, scores)
    work = workspace(largest, scores)
    heads = np.empty((lanes, max(largest, 1)), np.int16)
    lane_lengths, codes, best = aligned(lanes, scores), aligned(lanes, scores), aligned(lanes, scores)
    bases = np.empty(lanes, np.int64)
    for group in range(first, len(order), workers * lanes):
        size = pack(scores, n, order, group, lengths, packed, lane_lengths, bases, codes)
        best_heads(packed, size, lane_lengths, multiroot, work, heads, best)
        for lane in range(min(lanes, len(order) - group)):
            sentence = order[group + lane]
            for h in range(n):
                clear(z, sentence, h, 0)
            if codes[lane] > 0:
                status[sentence] = INFINITE if codes[lane] == 1 else NAN
            elif best[lane] == -np.inf:
                status[sentence] = INFEASIBLE
            else:
                for m in range(lengths[sentence]):
                    z[sentence, heads[lane, m], m] = 1.0


@inner
def workspace(n, like):
    """Everything `best_heads` needs for sentences of up to n words, in the dtype of `like`."""
    lanes = lanes_of(like)
    square = n * pitch_of(n) * lanes
    splits = np.empty((3, max(square, 1)), np.int16)
    root_splits = np.empty((2, (n + 1) * lanes), np.int16)
    stack = np.empty((2 * n + 4, 2), np.int64)  # a word heads at most one item a side
    complete, arc = aligned(square, like), aligned(square, like)
    return complete, arc, aligned((2 * n + 2) * lanes, like), splits, root_splits, stack


@called
def best_heads(scores, n, lane_lengths, multiroot, work, heads, best):
    """Find a best tree for each lane.

    Args:
        scores: a chart of n words, flat: `scores[(h * pitch + m) * lanes + lane]`, the root on the diagonal,
            -inf where h or m is padding.
        n: the largest length.
        lane_lengths: the length of each lane.
        multiroot: whether several words may attach to the root.
        work: from `workspace`.
        heads: `[lanes, >= n]`, int16, to write: a word's own index stands for the root. Lanes whose best
            score is -inf are left as they are.
        best: the score of each lane's tree, to write; -inf where there is none.
    """
    complete, arc, root, splits, root_splits, stack = work
    lanes = lanes_of(scores)
    _spans(scores, n, lanes, complete, arc, splits)
    _root(scores, n, lanes, multiroot, complete, root, root_splits)
    for lane in range(lanes):
        length = int(lane_lengths[lane])
        best[lane] = root[length * lanes + lane]
        if best[lane] > -np.inf:
            _trace(length, pitch_of(n), lanes, lane, splits, root_splits, stack, heads)


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
def _trace(length, pitch, lanes, lane, splits, root_splits, stack, heads):
    """Follow the splits of one lane; the stack holds (row, column) of complete items, right ones if row < column."""
    top = 0
    j = length
    while j > 0:
        r = root_splits[1, j * lanes + lane]
        heads[lane, r] = r
        start = root_splits[0, r * lanes + lane]
        stack[top, 0], stack[top, 1] = r, j - 1
        stack[top + 1, 0], stack[top + 1, 1] = r, start
        top += 2
        j = start
        while top > 0:
            top -= 1
            row, column = stack[top, 0], stack[top, 1]
            if row == column:
                continue
            low, high = min(row, column), max(row, column)
            if row < column:
                k = splits[1, (low * pitch + high) * lanes + lane]
                heads[lane, k] = row
                stack[top, 0], stack[top, 1] = k, high
                low, high = row, k
            else:
                k = splits[2, (low * pitch + high) * lanes + lane]
                heads[lane, k] = row
                stack[top, 0], stack[top, 1] = k, low
                low, high = k, row
            split = splits[0, (low * pitch + high) * lanes + lane]
            stack[top + 1, 0], stack[top + 1, 1] = low, split
            stack[top + 2, 0], stack[top + 2, 1] = high, split + 1
            top += 3
