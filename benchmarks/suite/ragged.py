from __future__ import annotations

from collections.abc import Iterator

from benchmarks import inputs
from benchmarks.comparison import Row, Run
from benchmarks.suite.operations import operations


def ragged(run: Run) -> Iterator[Row]:
    """What a ragged batch (lengths as in SST, up to 50) costs relative to a full one (n = 50). Work that grows as n^3
    would ideally cost the share in the first column.
    """
    for threads in run.threads:
        uneven = inputs.ragged(run.batch, threads=threads, device=run.device)
        even = inputs.full(inputs.RAGGED, run.batch, threads=threads, device=run.device)
        share = sum(n**3 for n in uneven.words) / sum(n**3 for n in even.words)
        row = Row("ragged", "ragged / full", threads, figures={"share of n^3": share})
        for name, call in operations(uneven).items():
            timings = run.time({"ragged": call, "full": operations(even)[name]}, threads=threads)
            if len(timings) == 2:
                row.figures[name] = timings["ragged"].median / timings["full"].median
        yield row
