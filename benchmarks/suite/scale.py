from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from pullback import Alignment, BinaryTree, DependencyTree, LinearChain, Segmentation, Structure, Subset

_SCALES = (1.0, 10.0, 30.0, 100.0, 1000.0)
_MASKS = (-1e9, -1e30)
_MASKED = 0.2  # of the parts
_CHECKED = 2  # examples, in float64
_TOLERANCE = 2e-3  # of float32 at scores of thousands, whose sums are rounded to that

_CASES: dict[str, tuple[Structure, tuple[int, ...]]] = {
    "projective": (DependencyTree(), (30, 30)),
    "non-projective": (DependencyTree(projective=False), (30, 30)),
    "chain": (LinearChain(), (30, 5, 5)),
    "segmentation": (Segmentation(), (30, 6, 5)),
    "binary tree": (BinaryTree(), (30, 30)),
    "alignment": (Alignment(), (30, 30)),
    "subset": (Subset(5), (50,)),
}


def scale(run: Run) -> Iterator[Row]:
    """What scores of any size cost: random normal scores times 1 to 1000, and a fifth of the parts masked by -1e9 and -1e30,
    each as a multiple of the time of scores x 1. Every result is compared with that in float64, where masks are -inf.
    """
    for threads in run.threads:
        for name, (structure, parts) in _CASES.items():
            for operation, call in _operations(structure).items():
                if run.wants(f"{operation}: {name}"):
                    yield from _rows(run, f"{operation}: {name}", threads, call, structure, parts)


def _operations(structure: Structure) -> dict[str, Callable[[Tensor], Any]]:
    return {
        "argmax": lambda s: structure.argmax(s.detach()),
        "log-partition": lambda s: structure.log_partition(s.detach()),
        "marginals": lambda s: structure.marginals(s.detach()),
        "marginals and backward": lambda s: torch.autograd.grad(structure.marginals(s).square().sum(), s)[0],
        "entropy": lambda s: structure.entropy(s.detach()),
    }


def _rows(
    run: Run, case: str, threads: int, call: Callable[[Tensor], Any], structure: Structure, parts: tuple[int, ...]
) -> Iterator[Row]:
    """One row per size of scores; all are timed in turn, so that their ratios do not depend on what else runs."""
    inputs = dict(_inputs(run, structure, parts))
    errors = {kind: _error(call, structure, scores, exact) for kind, (scores, exact) in inputs.items()}
    timings = run.time({kind: _bound(call, scores) for kind, (scores, _) in inputs.items()}, threads=threads)
    first = next(iter(timings.values())).median
    for kind, timing in timings.items():
        row = Row("scale", f"{case}, {kind}", threads, timing)
        row.figures = {"times scores x 1": timing.median / first, "largest error": errors[kind]}
        if not errors[kind] <= _TOLERANCE:
            row.note = "WRONG"
        yield row


def _bound(call: Callable[[Tensor], Any], scores: Tensor) -> Callable[[], Any]:
    return lambda: call(scores)


def _inputs(run: Run, structure: Structure, parts: tuple[int, ...]) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Scores, and the same of a few examples in float64 with masks of -inf."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(run.batch, *parts, generator=generator)
    kept = structure.argmax(torch.randn(run.batch, *parts, generator=generator)) > 0  # so that some structure is left
    masked = (torch.rand(run.batch, *parts, generator=generator) < _MASKED) & ~kept
    for factor in _SCALES:
        values = factor * scores
        yield f"x {factor:g}", (values.to(run.device).requires_grad_(), values[:_CHECKED].double())
    for mask in _MASKS:
        values = scores.masked_fill(masked, mask)
        exact = scores.double().masked_fill(masked, -torch.inf)[:_CHECKED]
        yield f"masks of {mask:.0e}", (values.to(run.device).requires_grad_(), exact)


def _error(call: Callable[[Tensor], Any], structure: Structure, scores: Tensor, exact: Tensor) -> float:
    """The largest difference to the result in float64 on the CPU, of numbers above 1 in proportion."""
    found = call(scores)[:_CHECKED].detach().cpu().double()
    expected = call(exact.requires_grad_()).detach()
    if bool(((found == 0) | (found == 1)).all()) and found.dim() == exact.dim():  # an argmax: ties may be broken otherwise
        found, expected = (structure.score(exact.detach(), z) for z in (found, expected))
    return float(((found - expected).abs() / expected.abs().clamp_min(1.0)).max())
