from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from benchmarks.calls import captured
from benchmarks.comparison import Row, Run
from benchmarks.inputs import Case, full
from benchmarks.suite.operations import operations
from pullback import DependencyTree

_N = 30
_SPIGOT = "SPIGOT's projection"


def graphs(run: Run) -> Iterator[Row]:
    """Our operations replayed from a CUDA graph, where Python's share of a call does not count, n = 30; `growth_batch` has
    the same calls from Python. SPIGOT's projection is that of `spigot`, in ms and as a multiple of one argmax.
    """
    if torch.device(run.device).type != "cuda":
        return
    for batch in run.batches:
        case = full(_N, batch, threads=1, device=run.device)
        calls = {name: captured(call) for name, call in (operations(case) | {_SPIGOT: _projection(case)}).items()}
        timings = run.time(calls, threads=1)
        row = Row("graphs", f"batch {batch}", 1, figures=dict(timings))
        row.figures[f"{_SPIGOT}, argmaxes"] = timings[_SPIGOT].median / timings["argmax"].median
        yield row


def _projection(case: Case) -> Callable[[], Any]:
    tree = DependencyTree(case.lengths)
    z = tree.argmax(case.scores)
    return partial(tree.sparsemap, z - 0.1 * case.direction, warm_start=z)
