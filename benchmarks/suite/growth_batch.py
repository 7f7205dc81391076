from __future__ import annotations

from collections.abc import Iterator

from benchmarks.comparison import Row, Run
from benchmarks.inputs import full
from benchmarks.suite.operations import operations

_N = 30


def growth_batch(run: Run) -> Iterator[Row]:
    """How our cost in ms grows with the batch, n = 30. A batch of one is mostly the price of a call."""
    for threads in run.threads:
        for batch in run.batches:
            case = full(_N, batch, threads=threads, device=run.device)
            timings = run.time(operations(case), threads=threads)
            yield Row("growth_batch", f"batch {batch}", threads, figures=dict(timings))
