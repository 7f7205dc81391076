"""SparseMAP of trees: the search of each sentence, compiled with an oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.inference.checks import INFEASIBLE, OK
from pullback.inference.compile import inner, lean
from pullback.inference.queues import take
from pullback.inference.sparsemap.face import completion
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.search import advance
from pullback.inference.sparsemap.starts import start
from pullback.inference.sparsemap.state import enter, make_arcs, make_trees, roomy, write


def solving(oracle: Oracle) -> Callable[..., Any]:
    """The function that solves sentences with this oracle; a kernel calls it."""
    projective, places, place_of, workspace = oracle.projective, oracle.places, oracle.place_of, oracle.workspace
    best_heads, rough_dtype = oracle.best_heads, oracle.rough
    has_rough = rough_dtype is not np.float64
    complete = completion(oracle)

    @inner
    @oracle.own
    def solve(taken, scores, lengths, order, multiroot, limit, starts, completing, result, status):
        """Solve sentences until none is left.

        Args:
            taken: how many sentences have been taken by all threads, `[1]`.
            scores: `[B, n, n]`, float64.
            lengths: `[B]`.
            order: sentences, longest first.
            multiroot: whether several words may attach to the root.
            limit: of calls of the oracle for each sentence.
            starts: trees to start from: heads `[B, k, n]` and weights `[B, k]`.
            completing: whether active sets are completed (see face.py).
            result: to write.
            status: `[B]`, to write.
        """
        n = scores.shape[-1]
        residual, roughly, tilted = np.empty(places(n)), np.empty(places(n), rough_dtype), np.empty(places(n))
        work, rough_work = workspace(n, residual), workspace(n, roughly)
        heads, place_of_slot = np.empty(n, np.int16), np.empty(n * n, np.int32)
        arcs, trees = make_arcs(n), make_trees(n, 8 * n + 8)  # more than most sentences need: only what is used is touched
        while True:
            following = take(taken)
            if following >= len(order):
                return
            b = order[following]
            length = lengths[b]
            if length == 0:
                result.sizes[b], result.weights[b, 0], result.heads[b, 0] = 1, 1.0, -1
                continue
            status[b] = enter(arcs, trees, scores[b], length)
            if status[b] != OK:
                continue
            trees = start(arcs, trees, scores[b], length, starts[0][b], starts[1][b], projective, multiroot)
            fill(arcs, scores[b], length, residual, roughly)
            rough, going, known = has_rough, True, 0
            while going:
                for slot in range(known, arcs.count[0]):
                    place_of_slot[slot] = place_of(arcs.head_of[slot], arcs.word_of[slot], length)
                known = arcs.count[0]
                subtract_mean(arcs, place_of_slot, residual, roughly)
                if rough:
                    exists = best_heads(roughly, length, multiroot, rough_work, heads)
                else:
                    exists = best_heads(residual, length, multiroot, work, heads)
                if exists:
                    trees = roomy(trees)
                    going = advance(arcs, trees, scores[b], length, heads, not rough, limit, b, result)
                elif not rough:
                    status[b] = INFEASIBLE
                    break
                if rough and not (exists and going):  # without a tree where scores leave its range
                    rough, going = False, True
            if completing and result.converged[b] and status[b] == OK:
                trees = complete(arcs, trees, scores[b], length, residual, multiroot, work, heads, tilted, b, result)
            write(arcs, trees, length, b, result)

    @lean
    @oracle.own
    def fill(arcs, scores, length, residual, roughly):
        """Write s where the oracle looks for s - mu."""
        residual[:] = -np.inf
        roughly[:] = -np.inf
        for h in range(length):
            for m in range(length):
                at = place_of(h, m, length)
                residual[at] = roughly[at] = scores[h, m] - arcs.shifts[m]

    return solve


@lean
def subtract_mean(arcs, place_of_slot, residual, roughly):
    """Write s - mu where trees have had arcs; elsewhere mu is zero."""
    for slot in range(arcs.count[0]):
        at = place_of_slot[slot]
        residual[at] = roughly[at] = arcs.scores[slot] - arcs.mean[slot]
