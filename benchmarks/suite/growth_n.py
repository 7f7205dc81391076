from __future__ import annotations

import math
from collections.abc import Iterator

from benchmarks.comparison import Row, Run
from benchmarks.inputs import full
from benchmarks.suite.operations import operations
from benchmarks.timing import Timing

_ENOUGH = 2.0  # seconds of a call, after which larger sizes of it are left out


def growth_n(run: Run) -> Iterator[Row]:
    """How our cost in ms grows with the length of the sentences, on one thread. The last line is the growth between the
    last two sizes. Sizes beyond two seconds per call are left out.
    """
    last: dict[str, list[tuple[int, Timing]]] = {}
    for n in run.growth:
        case = full(n, run.batch, threads=1, device=run.device)
        calls = {
            name: call
            for name, call in operations(case).items()
            if n == run.growth[0] or (name in last and last[name][-1][1].median < _ENOUGH)
        }
        timings = run.time(calls, threads=1)
        for name, timing in timings.items():
            last.setdefault(name, []).append((n, timing))
        yield Row("growth_n", case.label, 1, figures=dict(timings))
    exponents = {name: _exponent(*sizes[-2:]) for name, sizes in last.items() if len(sizes) > 1}
    yield Row("growth_n", "exponent", 1, figures=dict(exponents))


def _exponent(smaller: tuple[int, Timing], larger: tuple[int, Timing]) -> str:
    return f"n^{math.log(larger[1].median / smaller[1].median) / math.log(larger[0] / smaller[0]):.2f}"
