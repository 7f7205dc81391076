"""SparseMAP of all trees: one sentence after the other, with the algorithm of Chu, Liu and Edmonds as the oracle."""

from __future__ import annotations

import numpy as np

from pullback.inference.checks import OK
from pullback.inference.chu_liu_edmonds.kernels import best_heads, workspace
from pullback.inference.compile import kernel
from pullback.inference.sparsemap.face import completion, subtract_mean
from pullback.inference.sparsemap.search import advance
from pullback.inference.sparsemap.starts import start
from pullback.inference.sparsemap.state import enter, full, grown, make_arcs, make_trees, write

_complete = completion(best_heads)


@kernel
def solve(worker, workers, scores, lengths, multiroot, limit, starts, completing, result, status):
    """Solve the worker's share of sentences; the arguments are those of the projective kernel.

    One more says whether active sets are completed (see face.py).
    """
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
            subtract_mean(arcs, residual)
            status[b] = best_heads(residual, length, multiroot, work, heads)
            if status[b] != OK:
                break
            if full(trees):
                trees = grown(trees)
            going = advance(arcs, trees, 0, scores[b], length, heads, True, limit, b, result)
        if completing and result.converged[b] and status[b] == OK:
            trees = _complete(arcs, trees, scores[b], length, residual, multiroot, work, heads, tilted, b, result)
        write(arcs, trees, 0, length, b, result)
