"""SparseMAP of all trees: one sentence after the other, with the algorithm of Chu, Liu and Edmonds as the oracle."""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import OK
from pullback.inference.chu_liu_edmonds.kernels import best_heads, workspace
from pullback.inference.compile import inner, kernel, lean
from pullback.inference.sparsemap.face import tilt
from pullback.inference.sparsemap.search import advance, extend, improvement, rebuild
from pullback.inference.sparsemap.starts import start
from pullback.inference.sparsemap.state import enter, full, grown, make_arcs, make_trees, place, write


@kernel
def solve(worker, workers, scores, lengths, multiroot, limit, starts, result, status):
    """Solve the worker's share of sentences; the arguments are those of the projective kernel."""
    n = scores.shape[-1]
    work, residual, tilted = workspace(n), np.empty((n, n)), np.empty((n, n))
    heads = np.empty(n, np.int16)
    arcs, trees = make_arcs(1, n), make_trees(1, n)
    for b in range(worker, len(scores), workers):
        length = lengths[b]
        status[b] = enter(arcs, trees, 0, scores[b], length)
        if status[b] != OK or length == 0:
            continue
        given = starts[0][b], starts[1][b], starts[2][b]
        trees = start(arcs, trees, 0, scores[b], length, *given, False, multiroot, False)
        for h in range(length):
            for m in range(length):
                residual[h, m] = scores[b, h, m] - arcs.shifts[0, m]
        going = True
        while going:
            _subtract_mean(arcs, residual)
            status[b] = best_heads(residual, length, multiroot, work, heads)
            if status[b] != OK:
                break
            if full(trees):
                trees = grown(trees)
            going = advance(arcs, trees, 0, scores[b], length, heads, True, limit, b, result)
        if result.converged[b] and status[b] == OK:
            trees = _complete(arcs, trees, scores[b], length, residual, multiroot, work, heads, tilted, b, result)
        write(arcs, trees, 0, length, b, result)


@lean
def _subtract_mean(arcs, residual):
    for slot in range(arcs.counts[0]):
        residual[arcs.head_of[0, slot], arcs.word_of[0, slot]] = arcs.scores[0, slot] - arcs.mean[0, slot]


@inner
def _complete(arcs, trees, scores, length, residual, multiroot, work, heads, tilted, b, result):
    """Append trees of mu's face, with weight 0, until they span it (see face.py)."""
    if trees.changes[0] > 64 + 4 * trees.sizes[0]:
        rebuild(arcs, trees, 0, length)
    _, rounding = improvement(arcs, 0, scores, length, heads)
    attempt, failed = 0, 0
    while failed < 2:
        tilt(arcs, trees, 0, length, residual, attempt, 1e4 * rounding, tilted)
        best_heads(tilted, length, multiroot, work, heads)
        result.calls[b] += 1
        if full(trees):
            trees = grown(trees)
        gap, _ = improvement(arcs, 0, scores, length, heads)
        found = gap > -100 * rounding
        if found:
            place(arcs, trees, 0, scores, length, heads, 0.0)
            found = extend(trees, 0, length)
        # after a tree was found the next direction begins with its first side
        attempt, failed = (attempt + 2 - attempt % 2, 0) if found else (attempt + 1, failed + 1)
    return trees
