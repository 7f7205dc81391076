from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from benchmarks.timing import Timing

_EXAMPLE = Path(__file__).parents[2] / "examples" / "own_structure.py"
_POSITIONS, _TAGS = 30, 5


def own_structure(run: Run) -> Iterator[Row]:
    """SparseMAP of a user's structure with only an `argmax` in PyTorch: `Tags` of examples/own_structure.py, with 30
    positions and 5 tags. The solver's own time is all that is spent outside the argmax.
    """
    if run.device != "cpu":
        return
    tags: Any = runpy.run_path(str(_EXAMPLE))["Tags"]
    spent, clock = [0.0], run.effort.clock

    class Timed(tags):  # type: ignore[misc]
        __slots__ = ()

        def argmax(self, scores: Tensor) -> Tensor:
            begun = clock()
            z: Tensor = super().argmax(scores)
            spent[0] += clock() - begun
            return z

    for threads in run.threads:
        torch.set_num_threads(threads)
        for scale in (1.0, 0.1):
            generator = torch.Generator().manual_seed(0)
            scores = scale * torch.randn(run.batch, _POSITIONS, _TAGS, _TAGS, generator=generator)
            solution = Timed().sparsemap_solution(scores)
            own, inside = [], []
            for _ in range(run.effort.rounds):
                spent[0], begun = 0.0, clock()
                Timed().sparsemap_solution(scores)
                own.append(clock() - begun - spent[0])
                inside.append(spent[0])
            ours, theirs = Timing(tuple(own)), Timing(tuple(inside))
            row = Row("own_structure", f"scores of {scale:g}", threads, ours=ours)
            row.figures = {
                "in the argmax, ms": theirs,
                "own time / argmax": ours.median / theirs.median,
                "oracle calls, mean": solution.oracle_calls.double().mean().item(),
                "structures, mean": (solution.weights > 0).sum(-1).double().mean().item(),
                "gap": solution.gap.max().item(),
            }
            yield row
