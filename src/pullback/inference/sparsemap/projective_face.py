"""Completing the active sets of projective trees, one sentence after the other (see face.py).

Most sentences do not need it, so it comes after the search, which runs in lanes.
"""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import inner, kernel
from pullback.inference.eisner import maximum
from pullback.inference.eisner.packing import lanes_of, pitch_of
from pullback.inference.lanes import aligned
from pullback.inference.sparsemap.face import completion, subtract_mean
from pullback.inference.sparsemap.starts import start
from pullback.inference.sparsemap.state import enter, make_arcs, make_trees, write


@kernel
def complete(worker, workers, scores, lengths, chosen, multiroot, result):
    """Complete the worker's share of the chosen sentences, whose search has converged.

    Args:
        worker: which share.
        workers: of how many.
        scores: `[B, n, n]`, float64.
        lengths: `[B]`.
        chosen: sentences.
        multiroot: whether several words may attach to the root.
        result: of the search, to complete.
    """
    n = scores.shape[-1]
    work, residual, tilted = _workspace(n), np.empty((n, n)), np.empty((n, n))
    heads = np.empty(n, np.int16)
    arcs, trees = make_arcs(1, n), make_trees(1, n)
    for b in chosen[worker::workers]:
        length = lengths[b]
        enter(arcs, trees, 0, scores[b], length)
        given = result.heads[b], result.weights[b], result.sizes[b]
        trees = start(arcs, trees, 0, scores[b], length, *given, True, multiroot, True)
        subtract_mean(arcs, residual)
        heads[:] = result.heads[b, 0]
        trees = _complete(arcs, trees, scores[b], length, residual, multiroot, work, heads, tilted, b, result)
        write(arcs, trees, 0, length, b, result)


@inner
def _workspace(n):
    """What `_best_heads` needs for sentences of up to n words."""
    like = np.empty(0, np.float64)
    lanes = lanes_of(like)
    chart = aligned(n * pitch_of(n) * lanes, like)
    chart[:] = 0.0
    lane_heads = np.empty((lanes, n), np.int16)
    return maximum.workspace(n, like), chart, np.zeros(lanes, np.int64), lane_heads, aligned(lanes, like)


@inner
def _best_heads(scores, length, multiroot, work, heads):
    """The best tree of one sentence, in the first lane; the others are empty."""
    inside, chart, lane_lengths, lane_heads, best = work
    lanes = lanes_of(chart)
    for h in range(length):
        for m in range(length):
            chart[(h * pitch_of(length) + m) * lanes] = scores[h, m]
    lane_lengths[0] = length
    maximum.best_heads(chart, length, lane_lengths, multiroot, inside, lane_heads, best)
    heads[:length] = lane_heads[0, :length]


_complete = completion(_best_heads)
