"""One row of a table: ours against the peers, timed in the same run and compared with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from benchmarks.inputs import Case, full, ragged
from benchmarks.timing import Effort, Timing, measure

OURS = "pullback"


@dataclass(frozen=True)
class Contender:
    """A call to time, and how to read its result.

    Args:
        name: whose it is.
        call: what is timed.
        read: from what `call` returns to packed `[B, n, n]` results; not timed.
    """

    name: str
    call: Callable[[], Any]
    read: Callable[[Any], tuple[Tensor, ...]] = lambda result: result if isinstance(result, tuple) else (result,)


@dataclass
class Row:
    """A line of a benchmark's table.

    Attributes:
        ours: how long we take, None where this is not what the benchmark is about, or where it is not available.
        peers: how long each peer takes.
        difference: the largest difference between our result and a peer's.
        figures: further columns, by their heading.
        note: what the reader has to know.
    """

    benchmark: str
    case: str
    threads: int
    ours: Timing | None = None
    peers: dict[str, Timing] = field(default_factory=dict)
    difference: float | None = None
    figures: dict[str, Timing | float | str] = field(default_factory=dict)
    note: str = ""

    @property
    def fastest(self) -> str | None:
        return min(self.peers, key=lambda name: self.peers[name].median, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times faster we are than the fastest peer."""
        if self.ours is None or self.fastest is None:
            return None
        return self.peers[self.fastest].median / self.ours.median


Results = tuple[Tensor, ...]
Difference = Callable[[Case, Results, Results], float]


def largest_difference(case: Case, ours: Results, theirs: Results) -> float:
    """The largest difference of any entry, padding aside."""
    pairs = zip(ours, theirs, strict=True)
    return max(torch.where(case.mask, a.double() - b.double(), 0.0).abs().max().item() for a, b in pairs)


def score_difference(case: Case, ours: Results, theirs: Results) -> float:
    """The largest difference of the scores of two structures: of equally good ones either will do."""
    scores = torch.where(case.mask, case.scores, 0.0).double()
    values = [(scores * torch.where(case.mask, z, 0.0)).sum((-1, -2)) for (z,) in (ours, theirs)]
    return (values[0] - values[1]).abs().max().item()


@dataclass(frozen=True)
class Run:
    """What to measure and how hard to try.

    Attributes:
        device: where the scores live.
        threads: numbers of CPU threads.
        sizes: numbers of words.
        growth: numbers of words of the benchmarks of growth.
        batches: batch sizes of the benchmarks of growth.
        batch: the batch size of all others.
        effort: how long to measure.
        rows: parts of the names of the rows to measure; none are all rows.
    """

    device: str
    threads: tuple[int, ...]
    sizes: tuple[int, ...]
    growth: tuple[int, ...]
    batches: tuple[int, ...]
    batch: int
    effort: Effort
    rows: tuple[str, ...] = ()

    def wants(self, row: str) -> bool:
        """Whether a row of this name is to be measured."""
        return not self.rows or any(part in row for part in self.rows)

    def cases(self) -> Iterator[Case]:
        """Full batches of each size and a ragged one, on each number of threads."""
        for threads in self.threads:
            for n in self.sizes:
                yield full(n, self.batch, threads=threads, device=self.device)
            yield ragged(self.batch, threads=threads, device=self.device)

    def compare(
        self,
        benchmark: str,
        case: Case,
        ours: Callable[[], Any],
        peers: Sequence[Callable[[Case], Contender]] = (),
        difference: Difference = largest_difference,
    ) -> Row:
        """Time ours and those peers that are installed, and compare their results; an empty row if nobody wants it."""
        row = Row(benchmark, case.label, case.threads)
        if not self.wants(case.label):
            return row
        torch.set_num_threads(case.threads)
        contenders = [Contender(OURS, ours), *self.installed(peers, case)]
        results = {}
        for contender in contenders:
            try:
                results[contender.name] = contender.read(contender.call())
            except Exception as error:
                row.note += f"{contender.name} is not available: {_short(error)}. "
        calls = {contender.name: contender.call for contender in contenders if contender.name in results}
        timings = measure(calls, device=self.device, effort=self.effort)
        row.ours = timings.pop(OURS, None)
        row.peers = timings
        if OURS in results and timings:
            row.difference = max(difference(case, results[OURS], results[name]) for name in timings)
        return row

    def time(self, calls: dict[str, Callable[[], Any]], *, threads: int) -> dict[str, Timing]:
        """Time calls of our own, without those that are not available."""
        torch.set_num_threads(threads)
        able = {}
        for name, call in calls.items():
            try:
                call()
            except Exception:
                continue
            able[name] = call
        return measure(able, device=self.device, effort=self.effort)

    @staticmethod
    def installed(peers: Sequence[Callable[[Case], Contender]], case: Case) -> Iterator[Contender]:
        """The contenders of those peers that can be imported."""
        for peer in peers:
            try:
                yield peer(case)
            except ImportError:
                continue


def _short(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:80] if lines else ''}"
