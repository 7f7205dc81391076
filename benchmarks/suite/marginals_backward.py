from __future__ import annotations

from collections.abc import Iterator

from benchmarks.calls import with_backward
from benchmarks.comparison import Row, Run
from benchmarks.peers import supar, torch_struct
from pullback import DependencyTree


def marginals_backward(run: Run) -> Iterator[Row]:
    """Projective marginals, forward and backward. The difference is over marginals and gradients."""
    for case in run.cases():
        yield run.compare(
            "marginals_backward",
            case,
            with_backward(DependencyTree(case.lengths).marginals, case),
            [torch_struct.marginals_backward, supar.marginals_backward],
        )
