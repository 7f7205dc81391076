from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from benchmarks.timing import Timing
from pullback import Alignment, BinaryTree, DependencyTree, LinearChain, Segmentation, Structure, Subset

_SIZES = range(10, 50)
_CASES: dict[str, tuple[Structure, Callable[[int], tuple[int, ...]]]] = {
    "trees": (DependencyTree(), lambda n: (n, n)),
    "chain, C = 5": (LinearChain(), lambda n: (n, 5, 5)),
    "chain, C = 20": (LinearChain(), lambda n: (n, 20, 20)),
    "segmentation, W = 6, C = 5": (Segmentation(), lambda n: (n, 6, 5)),
    "binary tree": (BinaryTree(), lambda n: (n, n)),
    "alignment, m = 2 n": (Alignment(), lambda n: (n, 2 * n)),
    "subset, k = 5": (Subset(5), lambda n: (n,)),
}


def shapes(run: Run) -> Iterator[Row]:
    """What a call takes if the padded length changes from call to call (10, 11, ..., 49, again and again), as in training,
    beside calls with one length, their mean. Tables that are made for each length would show here.
    """
    for threads in run.threads:
        for name, (structure, parts) in _CASES.items():
            many = [_scores(run, parts(n)) for n in _SIZES]
            same = [_scores(run, parts(sum(_SIZES) // len(_SIZES)))] * len(many)
            for operation, call in _operations(structure).items():
                if run.wants(f"{operation}: {name}"):
                    yield _row(run, f"{operation}: {name}", threads, call, many, same)


def _scores(run: Run, parts: tuple[int, ...]) -> Tensor:
    return torch.randn(run.batch, *parts, generator=torch.Generator().manual_seed(0)).to(run.device).requires_grad_()


def _operations(structure: Structure) -> dict[str, Callable[[Tensor], Any]]:
    return {
        "argmax": lambda s: structure.argmax(s.detach()),
        "marginals and backward": lambda s: torch.autograd.grad(structure.marginals(s).square().sum(), s),
        "sample": lambda s: structure.sample(s.detach()),
    }


def _row(run: Run, case: str, threads: int, call: Callable[[Tensor], Any], many: list[Tensor], same: list[Tensor]) -> Row:
    calls = {"in turn": lambda: [call(s) for s in many], "one": lambda: [call(s) for s in same]}
    timings = run.time(calls, threads=threads)
    each = {name: Timing(tuple(sample / len(many) for sample in timing.samples)) for name, timing in timings.items()}
    ratio = each["in turn"].median / each["one"].median
    return Row("shapes", case, threads, each["in turn"], figures={"one length, ms": each["one"], "ratio": ratio})
