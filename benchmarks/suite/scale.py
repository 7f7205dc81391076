from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from pullback import (
    CTC,
    Alignment,
    BinaryTree,
    DependencyTree,
    FactoredChain,
    Knapsack,
    LinearChain,
    Segmentation,
    ShortestPath,
    Structure,
    Subset,
)

_SCALES = (1.0, 10.0, 30.0, 100.0, 1000.0)
_MASKS = (-1e9, -1e30)
_MASKED = 0.2  # of the parts
_CHECKED = 2  # examples, in float64
_TOLERANCE = 2e-3  # of float32 at scores of thousands, whose sums are rounded to that


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


_CASES: dict[str, tuple[Structure, tuple[int, ...]]] = {
    "projective": (DependencyTree(), (30, 30)),
    "non-projective": (DependencyTree(projective=False), (30, 30)),
    "chain": (LinearChain(), (30, 5, 5)),
    "segmentation": (Segmentation(), (30, 6, 5)),
    "binary tree": (BinaryTree(), (30, 30)),
    "alignment": (Alignment(), (30, 30)),
    "subset": (Subset(5), (50,)),
    "subset, at most": (Subset(5, at_most=True), (50,)),
    "knapsack": (Knapsack(torch.arange(50) % 10 + 1, 50), (50,)),
    "factored chain": (FactoredChain(_normal(20, 20)), (50, 20)),
    "segmentation with transitions": (Segmentation(transitions=_normal(5, 5)), (30, 6, 5)),
    "path on a grid": (ShortestPath.grid(12, 12), (12, 12)),
    "CTC": (CTC(torch.arange(20) * 7 % 31 + 1), (100, 32)),
}


def scale(run: Run) -> Iterator[Row]:
    """What scores of any size cost: random normal scores times 1 to 1000, and a fifth of the parts masked by -1e9 and -1e30,
    each as a multiple of the time of scores x 1. Transitions that belong to a structure grow with the scores. Every result is
    compared with that in float64, where masks are -inf.
    """
    for threads in run.threads:
        for name, (structure, parts) in _CASES.items():
            for operation, call in _OPERATIONS.items():
                if run.wants(f"{operation}: {name}"):
                    yield from _rows(run, f"{operation}: {name}", threads, call, structure, parts)


_Operation = Callable[[Structure, Tensor], Any]
_OPERATIONS: dict[str, _Operation] = {
    "argmax": lambda of, s: of.argmax(s.detach()),
    "log-partition": lambda of, s: of.log_partition(s.detach()),
    "marginals": lambda of, s: of.marginals(s.detach()),
    "marginals and backward": lambda of, s: torch.autograd.grad(of.marginals(s).square().sum(), s)[0],
    "entropy": lambda of, s: of.entropy(s.detach()),
}


def _rows(run: Run, case: str, threads: int, call: _Operation, structure: Structure, parts: tuple[int, ...]) -> Iterator[Row]:
    """One row per size of scores; all are timed in turn, so that their ratios do not depend on what else runs."""
    inputs = {kind: (_scaled(structure, factor), *rest) for kind, factor, *rest in _inputs(run, structure, parts)}
    errors = {kind: _error(call, of, scores, exact) for kind, (of, scores, exact) in inputs.items()}
    calls = {kind: partial(call, of, scores) for kind, (of, scores, _) in inputs.items()}
    timings = run.time(calls, threads=threads)
    first = next(iter(timings.values())).median
    for kind, timing in timings.items():
        row = Row("scale", f"{case}, {kind}", threads, timing)
        row.figures = {"times scores x 1": timing.median / first, "largest error": errors[kind]}
        if not errors[kind] <= _TOLERANCE:
            row.note = "WRONG"
        yield row


def _scaled(structure: Structure, factor: float) -> Structure:
    """The structure with its own scores times a factor."""
    own = getattr(structure, "transitions", None)
    return structure if own is None else type(structure)(transitions=factor * own)  # type: ignore[call-arg]


def _inputs(run: Run, structure: Structure, parts: tuple[int, ...]) -> Iterator[tuple[str, float, Tensor, Tensor]]:
    """Scores with their factor, and the same of a few examples in float64 with masks of -inf."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(run.batch, *parts, generator=generator)
    kept = structure.argmax(torch.randn(run.batch, *parts, generator=generator)) > 0  # so that some structure is left
    masked = (torch.rand(run.batch, *parts, generator=generator) < _MASKED) & ~kept
    for factor in _SCALES:
        values = factor * scores
        yield f"x {factor:g}", factor, values.to(run.device).requires_grad_(), values[:_CHECKED].double()
    for mask in _MASKS:
        values = scores.masked_fill(masked, mask)
        exact = scores.double().masked_fill(masked, -torch.inf)[:_CHECKED]
        yield f"masks of {mask:.0e}", 1.0, values.to(run.device).requires_grad_(), exact


def _error(call: _Operation, structure: Structure, scores: Tensor, exact: Tensor) -> float:
    """The largest difference to the result in float64 on the CPU, of numbers above 1 in proportion."""
    found = call(structure, scores)[:_CHECKED].detach().cpu().double()
    expected = call(structure, exact.requires_grad_()).detach()
    if bool(((found == 0) | (found == 1)).all()) and found.dim() == exact.dim():  # an argmax: ties may be broken otherwise
        found, expected = (structure.score(exact.detach(), z) for z in (found, expected))
    return float(((found - expected).abs() / expected.abs().clamp_min(1.0)).max())
