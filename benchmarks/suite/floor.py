from __future__ import annotations

from collections.abc import Iterator

from benchmarks.comparison import Row, Run
from benchmarks.inputs import Case
from benchmarks.peak import fused_multiply_adds_a_second
from benchmarks.suite.operations import operations

_PASSES = {"argmax": 1, "marginals": 3, "marginals and backward": 6}


def floor(run: Run) -> Iterator[Row]:
    """How far we are from what one core could do. The inside pass has about n^3 / 2 fused multiply-adds per sentence (for
    the argmax an addition and a maximum each); marginals are three passes, and with their backward pass at least
    six. Times and floors are in ms. The peak is measured in this run, with float32 vectors in registers.
    """
    if run.device != "cpu":
        return
    rate = fused_multiply_adds_a_second()
    for case in run.cases():
        if case.threads != 1:
            continue
        calls = operations(case)
        timings = run.time({name: calls[name] for name in _PASSES}, threads=1)
        row = Row("floor", case.label, 1, figures={"peak, GFLOP/s": 2e-9 * rate})
        for name, timing in timings.items():
            least = _PASSES[name] * _inside(case) / rate
            row.figures[name] = timing
            row.figures[f"{name}, floor"] = f"{1e3 * least:.3f}"
            row.figures[f"{name}, times the floor"] = timing.median / least
        yield row


def _inside(case: Case) -> float:
    return sum(n**3 / 2 for n in case.words)
