"""SparseMAP of projective trees: Eisner's algorithm is the oracle, in float32 until it finds nothing new."""

from __future__ import annotations

import numpy as np

from pullback.inference.compile import kernel
from pullback.inference.eisner import spans
from pullback.inference.sparsemap.oracle import Oracle
from pullback.inference.sparsemap.sentences import solving

_solve = solving(
    Oracle("projective", True, spans.places, spans.place_of, spans.workspace, spans.best_heads, np.float32)
)


@kernel
def solve(worker, workers, taken, scores, lengths, order, multiroot, limit, starts, completing, result, status):
    """Solve sentences until none is left; sentences.py has the arguments."""
    _solve(taken, scores, lengths, order, multiroot, limit, starts, completing, result, status)
