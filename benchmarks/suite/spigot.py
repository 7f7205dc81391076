from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import Row, Run, largest_difference
from pullback import DependencyTree

_STEP = 0.1


def spigot(run: Run) -> Iterator[Row]:
    """SPIGOT's projection: an argmax z moved by 0.1 times a random normal step and projected back, started at z; as a
    multiple of one argmax. The error is the distance in any entry from the projection in float64.
    """
    for case in run.cases():
        tree = DependencyTree(case.lengths)
        row = Row("spigot", case.label, case.threads)
        try:
            z = tree.argmax(case.scores)
            moved = z - _STEP * case.direction
            solution = tree.sparsemap_solution(moved, warm_start=z)
        except Exception as error:
            row.note = f"not available: {type(error).__name__}"
            yield row
            continue
        timings = run.time(
            {
                "argmax": partial(tree.argmax, case.scores),
                "projection": partial(tree.sparsemap, moved, warm_start=z),
            },
            threads=case.threads,
        )
        exact = tree.sparsemap(moved.double())
        row.ours = timings["projection"]
        row.figures = {
            "one argmax, ms": timings["argmax"],
            "multiple of an argmax": timings["projection"].median / timings["argmax"].median,
            "oracle calls, mean": solution.oracle_calls.double().mean().item(),
            "oracle calls, most": float(solution.oracle_calls.max()),
            "trees, mean": (solution.weights > 0).sum(-1).double().mean().item(),
            "gap": solution.gap.max().item(),
            "error": largest_difference(case, (solution.mu,), (exact,)),
        }
        yield row
