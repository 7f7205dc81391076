from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.comparison import Row, Run
from pullback import DependencyTree, SparseMAPSolution

_N, _BATCH, _STEP = 30, 32, 0.1


def warm_starts(run: Run) -> Iterator[Row]:
    """Calls of the oracle with the active set of a similar problem as the start: projective trees of 30 words, 32 sentences;
    the scores, or SPIGOT's step gamma, have changed by a multiple of their standard deviation.
    """
    generator = torch.Generator().manual_seed(0)
    shape = _BATCH, _N, _N
    scores, noise, gamma, other = (torch.randn(shape, generator=generator).to(run.device) for _ in range(4))
    tree = DependencyTree()
    before, z = tree.sparsemap_solution(scores), tree.argmax(scores)
    stepped = tree.sparsemap_solution(z - _STEP * gamma, warm_start=z)
    for change in (0.01, 0.1, 0.3, 1.0):
        moved = scores + change * noise
        cold, warm = tree.sparsemap_solution(moved), tree.sparsemap_solution(moved, warm_start=before)
        yield _row(f"SparseMAP, scores by {change}", cold, warm)
        z = tree.argmax(scores + _STEP * change * noise)
        step = z - _STEP * (gamma + change * other)
        cold, warm = tree.sparsemap_solution(step, warm_start=z), tree.sparsemap_solution(step, warm_start=stepped)
        yield _row(f"SPIGOT's projection, gamma by {change}", cold, warm)


def _row(case: str, cold: SparseMAPSolution, warm: SparseMAPSolution) -> Row:
    row = Row("warm_starts", case, 1)
    calls = [solution.oracle_calls.double().mean().item() for solution in (cold, warm)]
    row.figures = {"calls, cold": calls[0], "calls, warm": calls[1], "saved": 1 - calls[1] / calls[0]}
    return row
