from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from benchmarks.timing import Timing
from pullback import (
    CTC,
    Alignment,
    BinaryTree,
    FactoredChain,
    Knapsack,
    LinearChain,
    Matching,
    Segmentation,
    ShortestPath,
    Structure,
    Subset,
)


@dataclass(frozen=True)
class Line:
    """Problems of one kind that grow in one letter.

    Attributes:
        name: what grows, and what does not.
        sizes: of the letter.
        make: from a size to the structure and the shape of one example.
        batch: how many examples there are.
    """

    name: str
    sizes: tuple[int, ...]
    make: Callable[[int], tuple[Structure, tuple[int, ...]]]
    batch: int


def _costs(n: int) -> Tensor:
    return torch.randint(1, 20, (n,), generator=torch.Generator().manual_seed(0))


def _ctc(length: int) -> CTC:
    return CTC(torch.randint(1, 64, (length,), generator=torch.Generator().manual_seed(0)))


def _network(edges: int) -> ShortestPath:
    """Layers of 10 nodes, each with edges to all of the next layer, between a source and a target, cut to so many edges."""
    layers = edges // 100
    steps = [(1 + 10 * i + a, 11 + 10 * i + b) for i in range(layers - 1) for a in range(10) for b in range(10)]
    last = 1 + 10 * layers
    ends = [(0, 1 + a) for a in range(10)] + [(last - 10 + a, last) for a in range(10)]
    more = [(0, last)] * (edges - len(steps) - len(ends))
    return ShortestPath(steps + ends + more, 0, last)


LINES = (
    Line("chain: n, C = 5, batch 1", (100, 1000, 10_000), lambda n: (LinearChain(), (n, 5, 5)), 1),
    Line("chain: C, n = 50, batch 1", (20, 100, 500), lambda c: (LinearChain(), (50, c, c)), 1),
    Line("segmentation: n, W = 6, C = 5, batch 16", (100, 1000, 5000), lambda n: (Segmentation(), (n, 6, 5)), 16),
    Line("binary tree: n, batch 16", (25, 50, 100), lambda n: (BinaryTree(), (n, n)), 16),
    Line("alignment: n = m, batch 1", (500, 1000, 2000), lambda n: (Alignment(), (n, n)), 1),
    Line("subset: n, k = 10, batch 16", (100, 1000, 10_000), lambda n: (Subset(10), (n,)), 16),
    Line("subset: k, n = 10000, batch 16", (10, 30, 100), lambda k: (Subset(k), (10_000,)), 16),
    Line("at most k: n, k = 10, batch 16", (100, 1000, 10_000), lambda n: (Subset(10, at_most=True), (n,)), 16),
    Line("knapsack: n, budget = 100, batch 16", (30, 100, 300), lambda n: (Knapsack(_costs(n), 100), (n,)), 16),
    Line("knapsack: budget, n = 100, batch 16", (30, 100, 300), lambda b: (Knapsack(_costs(100), b), (100,)), 16),
    Line("CTC: T, V = 64, L = 60, batch 1", (1000, 3000, 10_000), lambda t: (_ctc(60), (t, 64)), 1),
    Line("CTC: L, T = 1000, V = 64, batch 1", (30, 100, 300), lambda s: (_ctc(s), (1000, 64)), 1),
    Line("factored chain: n, C = 20, batch 1", (100, 1000, 10_000), lambda n: (FactoredChain(torch.zeros(20, 20)), (n, 20)), 1),
    Line("factored chain: C, n = 50, batch 1", (10, 100, 1000), lambda C: (FactoredChain(torch.zeros(C, C)), (50, C)), 1),
    Line("matching: n = m, batch 1", (100, 300, 1000), lambda n: (Matching(), (n, n)), 1),
    Line("shortest path: edges, batch 1", (1000, 10_000, 100_000), lambda e: (_network(e), (e,)), 1),
)


def growth_structures(run: Run) -> Iterator[Row]:
    """How the cost in ms of the structures grows, up to large problems, on one thread. After the sizes of a line, the
    exponents of its growth between the last two.
    """
    for line in LINES:
        if not run.wants(line.name):
            continue
        known: list[dict[str, Timing]] = []
        for size in line.sizes:
            known.append(run.time(_calls(line, size, run.device), threads=1))
            yield Row("growth_structures", f"{line.name}: {size}", 1, figures=dict(known[-1]))
        yield Row("growth_structures", f"{line.name}: exponent", 1, figures=_exponents(line.sizes[-2:], known[-2:]))


def _calls(line: Line, size: int, device: str) -> dict[str, Callable[[], Any]]:
    structure, shape = line.make(size)
    scores = torch.randn(line.batch, *shape, generator=torch.Generator().manual_seed(0)).to(device)
    leaf = scores.clone().requires_grad_()
    return {
        "argmax": lambda: structure.argmax(scores),
        "marginals": lambda: structure.marginals(scores),
        "log-partition and backward": lambda: torch.autograd.grad(structure.log_partition(leaf).sum(), leaf)[0],
    }


def _exponents(sizes: tuple[int, ...], timings: list[dict[str, Timing]]) -> dict[str, Timing | float | str]:
    (small, large), (before, after) = sizes, timings
    return {
        name: f"{math.log(after[name].median / before[name].median) / math.log(large / small):.2f}"
        for name in after
        if name in before
    }


def ragged_structures(run: Run) -> Iterator[Row]:
    """What a ragged batch costs relative to a full one, on one thread: lengths are uniform up to those of the full batch. The
    first column is the share of the work.
    """
    half = torch.randint(1, 101, (run.batch,), generator=torch.Generator().manual_seed(0)).to(run.device)
    cases: dict[str, tuple[Callable[[Any], Structure], tuple[int, ...], int]] = {
        "chain, n = 100, C = 10": (LinearChain, (100, 10, 10), 1),
        "segmentation, n = 100, W = 6, C = 5": (Segmentation, (100, 6, 5), 1),
        "binary tree, n = 50": (
            lambda lengths: BinaryTree(lengths if lengths is None else (lengths + 1) // 2),
            (50, 50),
            3,
        ),
        "alignment, 100 x 100": (lambda lengths: Alignment(lengths, lengths), (100, 100), 2),
        "subset, 1 of 100": (lambda lengths: Subset(1, lengths), (100,), 1),
    }
    for name, (make, shape, power) in cases.items():
        scores = torch.randn(run.batch, *shape, generator=torch.Generator().manual_seed(0)).to(run.device)
        even, uneven = make(None), make(half)
        row = Row("ragged_structures", name, 1, figures={"share of the work": float(((half / 100.0) ** power).mean())})
        for operation in ("argmax", "marginals"):
            calls = {
                "even": partial(getattr(even, operation), scores),
                "uneven": partial(getattr(uneven, operation), scores),
            }
            timings = run.time(calls, threads=1)
            row.figures[operation] = timings["uneven"].median / timings["even"].median
        yield row
