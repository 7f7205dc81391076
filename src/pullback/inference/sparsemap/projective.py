"""SparseMAP of projective trees: a search in each SIMD lane, with Eisner's algorithm on all of them as the oracle.

A lane whose search ends takes the next sentence, so that lanes stay busy. Float32 lanes are twice as many, but their
oracle is rough: they find almost all of the active set, float64 lanes finish.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import kernel, lean
from pullback.inference.eisner.maximum import best_heads, workspace
from pullback.inference.eisner.packing import lanes_of, pitch_of
from pullback.inference.lanes import aligned, load, store
from pullback.inference.sparsemap.search import advance
from pullback.inference.sparsemap.starts import start
from pullback.inference.sparsemap.state import enter, full, grown, make_arcs, make_trees, write


@kernel
def solve(worker, workers, scores, lengths, order, multiroot, limit, like, starts, trusted, result, status):
    """Solve the worker's share of sentences.

    Args:
        worker: which share.
        workers: of how many.
        scores: `[B, n, n]`, float64.
        lengths: `[B]`.
        order: sentences, longest first.
        multiroot: whether several words may attach to the root.
        limit: of calls of the oracle for each sentence.
        like: an array of the oracle's dtype.
        starts: trees to start from: heads `[B, k, n]`, weights `[B, k]`, and how many there are, `[B]`.
        trusted: whether these are known to be trees; otherwise they are checked.
        result: to write.
        status: `[B]`, to write.
    """
    if worker >= len(order) or lengths[order[worker]] == 0:
        return
    n = lengths[order[worker]]
    lanes, exact = lanes_of(like), like.itemsize == 8
    work, chart, best = workspace(n, like), aligned(n * pitch_of(n) * lanes, like), aligned(lanes, like)
    chart[:] = 0.0
    arcs, trees = make_arcs(lanes, n), make_trees(lanes, n)
    heads = np.empty((lanes, n), np.int16)
    sentence, lane_lengths = np.full(lanes, -1), np.zeros(lanes, np.int64)
    following = worker
    while True:
        for lane in range(lanes):
            while sentence[lane] < 0 and following < len(order):
                b = order[following]
                following += workers
                status[b] = max(status[b], enter(arcs, trees, lane, scores[b], lengths[b]))
                if status[b] != OK or lengths[b] == 0:
                    continue
                given = starts[0][b], starts[1][b], starts[2][b]
                trees = start(arcs, trees, lane, scores[b], lengths[b], *given, True, multiroot, trusted)
                sentence[lane], lane_lengths[lane] = b, lengths[b]
                _fill(arcs, lane, scores[b], lengths[b], chart, n, lanes)
                _subtract_mean(arcs, lane, chart, n, lanes)
        longest = lane_lengths.max()
        if longest == 0:
            return
        if longest < n:
            _shrink(chart, n, longest, lanes)
            n = longest
        if full(trees):
            trees = grown(trees)
        best_heads(chart, n, lane_lengths, multiroot, work, heads, best)
        for lane in range(lanes):
            b = sentence[lane]
            if b < 0:
                continue
            status[b] = OK if best[lane] > -np.inf else INFEASIBLE
            if not _iterate(arcs, trees, lane, scores, lengths, heads, exact, limit, b, result, status, chart, n, lanes):
                sentence[lane], lane_lengths[lane] = -1, 0


@lean
def _iterate(arcs, trees, lane, scores, lengths, heads, exact, limit, b, result, status, chart, n, lanes):
    """Go on with the search of a lane, or end it."""
    length = lengths[b]
    if status[b] == OK and advance(arcs, trees, lane, scores[b], length, heads[lane], exact, limit, b, result):
        _subtract_mean(arcs, lane, chart, n, lanes)
        return True
    write(arcs, trees, lane, length, b, result)
    return False


@lean
def _fill(arcs, lane, scores, length, chart, n, lanes):
    """Write a sentence's scores, less their shifts, into its lane of the oracle's chart."""
    for h in range(n):
        for m in range(n):
            inside = h < length and m < length
            score = scores[h, m] - arcs.shifts[lane, m] if inside else -np.inf
            chart[(h * pitch_of(n) + m) * lanes + lane] = score


@lean
def _subtract_mean(arcs, lane, chart, n, lanes):
    """Write s - mu into the lane, where mu may have changed."""
    for slot in range(arcs.counts[lane]):
        at = arcs.head_of[lane, slot] * pitch_of(n) + arcs.word_of[lane, slot]
        chart[at * lanes + lane] = arcs.scores[lane, slot] - arcs.mean[lane, slot]


@lean
def _shrink(chart, n, smaller, lanes):
    """Move a chart of n words to where one of fewer words has it."""
    for h in range(smaller):
        for m in range(smaller):
            store(chart, (h * pitch_of(smaller) + m) * lanes, load(chart, (h * pitch_of(n) + m) * lanes))
