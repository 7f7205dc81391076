from __future__ import annotations

from collections.abc import Iterator

from benchmarks.calls import with_backward
from benchmarks.comparison import Row, Run
from benchmarks.inputs import Case, full
from benchmarks.peers import entmax
from pullback import Categorical

_CLASSES = (10, 50, 200)


def sparsemax(run: Run) -> Iterator[Row]:
    """SparseMAP of a categorical variable, that is sparsemax, forward and backward: K distributions of K classes for
    each of the batch.
    """
    for threads in run.threads:
        for classes in _CLASSES:
            case = full(classes, run.batch, threads=threads, device=run.device)
            case = Case(f"K = {classes}", threads, case.scores, None, case.direction)
            yield run.compare("sparsemax", case, with_backward(Categorical().sparsemap, case), [entmax.sparsemax_backward])
