from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import Row, Run, score_difference
from benchmarks.peers import supar, torch_struct
from pullback import DependencyTree


def argmax(run: Run) -> Iterator[Row]:
    """Projective argmax (Eisner). The difference is that of the trees' scores."""
    for case in run.cases():
        yield run.compare(
            "argmax",
            case,
            partial(DependencyTree(case.lengths).argmax, case.scores),
            [torch_struct.argmax, supar.argmax],
            score_difference,
        )
