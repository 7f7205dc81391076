from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import Row, Run
from benchmarks.peers import supar, torch_struct
from pullback import DependencyTree


def nonprojective_marginals(run: Run) -> Iterator[Row]:
    """Non-projective marginals (the matrix-tree theorem). torch-struct adds an epsilon to every arc's weight; how far
    each is from the truth is in `accuracy`.
    """
    for case in run.cases():
        yield run.compare(
            "nonprojective_marginals",
            case,
            partial(DependencyTree(case.lengths, projective=False).marginals, case.scores),
            [torch_struct.nonprojective_marginals, supar.nonprojective_marginals],
        )
