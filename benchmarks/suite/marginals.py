from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import Row, Run
from benchmarks.peers import supar, torch_struct
from pullback import DependencyTree


def marginals(run: Run) -> Iterator[Row]:
    """Projective marginals (inside-outside)."""
    for case in run.cases():
        yield run.compare(
            "marginals",
            case,
            partial(DependencyTree(case.lengths).marginals, case.scores),
            [torch_struct.marginals, supar.marginals],
        )
