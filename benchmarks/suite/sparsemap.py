from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.calls import with_backward
from benchmarks.comparison import Row, Run, largest_difference
from benchmarks.inputs import Case
from benchmarks.peers import lp_sparsemap
from pullback import DependencyTree

_MEASURED_BEFORE = (
    "lp-sparsemap is not installed; seen elsewhere at n = 30, batch 64, one thread: "
    "225 ms to convergence, 100 ms at 50 iterations with every sentence unconverged"
)


def sparsemap(run: Run) -> Iterator[Row]:
    """SparseMAP to optimality, forward and backward, against lp-sparsemap run to convergence (single-root projective
    trees, the only ones it has). The gaps are the largest duality gap of a sentence, found in float64; the gradients'
    difference is a column of its own, as active sets that are not unique have gradients that are not.
    """
    for case in run.cases():
        tree = DependencyTree(case.lengths, multiroot=False)
        gradients: list[float] = []
        peer_gaps: list[float] = []

        def difference(case: Case, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
            gradients.append(largest_difference(case, ours[1:], theirs[1:]))  # noqa: B023
            peer_gaps.append(_gap(case, theirs[0]))  # noqa: B023
            return largest_difference(case, ours[:1], theirs[:1])

        row = run.compare(
            "sparsemap",
            case,
            with_backward(tree.sparsemap, case),
            [lp_sparsemap.graph, lp_sparsemap.factor],
            difference,
        )
        if gradients:
            row.figures = {"gradient difference": max(gradients), "peer's gap": max(peer_gaps)}
        if row.ours is not None:
            solution = tree.sparsemap_solution(case.scores)
            row.figures["gap"] = _gap(case, solution.mu)
            row.figures["oracle calls, mean"] = solution.oracle_calls.double().mean().item()
            row.figures["oracle calls, most"] = float(solution.oracle_calls.max())
            row.figures["not converged"] = float((~solution.converged).sum())
        if not row.peers:
            row.note += _MEASURED_BEFORE
        yield row


def _gap(case: Case, mu: Tensor) -> float:
    """The largest <s - mu, z - mu> of any tree z: zero proves that mu is the projection."""
    mu = torch.where(case.mask, mu.detach(), 0.0).double()
    slope = torch.where(case.mask, case.scores, 0.0).double() - mu
    best = DependencyTree(case.lengths, multiroot=False).argmax(slope)
    return (slope * (best - mu)).sum((-1, -2)).max().item()
