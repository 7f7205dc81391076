from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import Row, Run
from benchmarks.inputs import full
from pullback import DependencyTree

_BATCH = 16


def sparsemap_scale(run: Run) -> Iterator[Row]:
    """SparseMAP of 16 sentences as random normal scores are scaled down, to where training starts: the nearer scores are to
    each other, the more trees the projection is a mean of. The last column is the time of one sentence.
    """
    for n in (20, 30):
        case = full(n, _BATCH, threads=1, device=run.device)
        for scale in (1.0, 0.1, 0.001):
            scores = scale * case.scores
            solution = DependencyTree().sparsemap_solution(scores)
            row = Row("sparsemap_scale", f"n = {n}, scores of {scale:g}", 1)
            row.ours = run.time({"ours": partial(DependencyTree().sparsemap, scores)}, threads=1)["ours"]
            row.figures = {
                "trees, mean": (solution.weights > 0).sum(-1).double().mean().item(),
                "oracle calls, mean": solution.oracle_calls.double().mean().item(),
                "gap": solution.gap.max().item(),
                "ms per sentence": 1e3 * row.ours.median / _BATCH,
            }
            yield row
