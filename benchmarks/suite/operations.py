"""Our operations, as the benchmarks of their growth time them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.calls import with_backward
from benchmarks.inputs import Case
from pullback import DependencyTree


def operations(case: Case) -> dict[str, Callable[[], Any]]:
    """Calls by the name of a table's column."""
    projective, any_tree = DependencyTree(case.lengths), DependencyTree(case.lengths, projective=False)
    return {
        "argmax": lambda: projective.argmax(case.scores),
        "marginals": lambda: projective.marginals(case.scores),
        "marginals and backward": with_backward(projective.marginals, case),
        "SparseMAP and backward": with_backward(projective.sparsemap, case),
        "non-projective argmax": lambda: any_tree.argmax(case.scores),
        "non-projective marginals": lambda: any_tree.marginals(case.scores),
    }
