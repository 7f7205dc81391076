from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import Row, Run, score_difference
from benchmarks.peers import supar
from pullback import DependencyTree


def nonprojective_argmax(run: Run) -> Iterator[Row]:
    """Non-projective argmax (Chu-Liu-Edmonds). The difference is that of the trees' scores."""
    for case in run.cases():
        yield run.compare(
            "nonprojective_argmax",
            case,
            partial(DependencyTree(case.lengths, projective=False).argmax, case.scores),
            [supar.nonprojective_argmax],
            score_difference,
        )
