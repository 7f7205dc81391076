from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Row, Run
from benchmarks.peers import ctc_states
from pullback import CTC, Alignment, BinaryTree, DependencyTree, LinearChain, Structure, Subset
from pullback.inference.alignment import reference as alignments
from pullback.inference.chain import reference as chains
from pullback.inference.cky import reference as binary_trees
from pullback.inference.eisner import reference as trees
from pullback.inference.engine.hypergraph.backends import functions
from pullback.inference.engine.hypergraph.recursions import graph_of
from pullback.inference.engine.recursion import Combine
from pullback.inference.front.family import FUSED, STANDARD, Family
from pullback.structures.family import FamilyStructure

_TOLERANCE = 5e-4  # of results in float32, of numbers above 1 in proportion


def _at_most(scores: Tensor, lengths: Tensor, k: Tensor, most: int, combine: Combine) -> Tensor:
    """The recursion of subsets, whose table ends at the largest k of the batch."""
    ways = scores.new_full((len(scores), most + 1), -torch.inf)
    ways[:, 0] = 0.0
    for i in range(scores.shape[1]):
        taken = torch.cat([scores.new_full((len(scores), 1), -torch.inf), ways[:, :-1] + scores[:, i, None]], 1)
        ways = combine(torch.stack([ways, taken], 1), 1)
    return ways.gather(1, k.clamp_max(most)[:, None]).squeeze(1)


def _traced(structure: type[FamilyStructure], value: Callable[..., Tensor]) -> type[FamilyStructure]:
    """The structure with the hypergraph that its recursion makes, on every device."""
    family = structure.family
    graph = graph_of(value, family.layout)
    return _with(structure, lambda backend: functions(backend, family.layout, graph, value, lambda shape, **_: shape[0]))


def _with(structure: type[FamilyStructure], implementations: Callable[[str], Any]) -> type[FamilyStructure]:
    family = structure.family
    engine = Family(
        f"engine_{family.name}", family.layout, nouns=family.nouns, options=family.options,
        operations=STANDARD + FUSED, implementations=implementations,
    )  # fmt: skip
    return type(structure.__name__, (structure,), {"family": engine})


@dataclass(frozen=True)
class _Case:
    """A structure, once on kernels by hand and once on the engine, and the sizes to time."""

    name: str
    structure: type[FamilyStructure]
    value: Callable[..., Tensor] | None
    sizes: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...]
    sorts: bool = False  # whether the argmax is a sort

    def engine(self) -> type[FamilyStructure]:
        if self.value is None:
            return _with(self.structure, lambda backend: SimpleNamespace(**ctc_states.operations(backend)))
        return _traced(self.structure, self.value)


def _square(*sizes: int) -> tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...]:
    return tuple((f"n = {n}", (n, n), {}) for n in sizes)


def _ctc(frames: int, symbols: int, length: int) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    targets = torch.randint(1, symbols, (64, length), generator=torch.Generator().manual_seed(0))
    return f"T = {frames}, V = {symbols}, L = {length}", (frames, symbols), {"targets": targets}


_CASES = (
    _Case(
        "chain", LinearChain, chains.value,
        (("n = 30, C = 5", (30, 5, 5), {}), ("n = 50, C = 20", (50, 20, 20), {})),
    ),
    _Case(
        "alignment", Alignment, alignments.value,
        (
            *((f"{n} x {n}", (n, n), {}) for n in (30, 100, 200)),
            ("forward, 100 x 400", (100, 400), {"moves": "forward"}),
        ),
    ),
    _Case("CTC", CTC, None, (_ctc(100, 32, 20), _ctc(500, 64, 60))),
    _Case("binary tree", BinaryTree, binary_trees.value, _square(30, 50)),
    _Case("projective tree", DependencyTree, trees.value, _square(30, 50)),
    _Case(
        "subset", Subset, _at_most, (("5 of 30", (30,), {"k": 5}), ("10 of 100", (100,), {"k": 10})), sorts=True,
    ),
)  # fmt: skip


def engine(run: Run) -> Iterator[Row]:
    """Every kernel that is written by hand, against the engine of hypergraphs on the same recursion (engine/hypergraph), by
    the same public call. A ratio above 1 says how many times faster the kernel is. Results are compared: the argmax by its
    score, a sample by whether it is a structure; a difference of more than 5e-4 is an error. The kernels of binary trees
    and projective trees are generated from rules. The engine's CTC has a table of the states of targets, so that scores are
    gathered and results added up by symbol, which is counted; its batch has one length.
    """
    for case in _CASES:
        engine = case.engine()
        for label, parts, given in case.sizes:
            batch = 32 if parts[0] >= 500 else run.batch
            scores = torch.randn(batch, *parts, generator=torch.Generator().manual_seed(0))
            direction = torch.randn(batch, *parts, generator=torch.Generator().manual_seed(1))
            own = {name: x[:batch] if isinstance(x, Tensor) else x for name, x in given.items()}
            pair = {"by hand": case.structure(**own), "engine": engine(**own)}
            calls = {name: _calls(one, scores.to(run.device), direction.to(run.device)) for name, one in pair.items()}
            for operation in calls["engine"]:
                name = f"{operation}, {case.name} {label}"
                if run.wants(name) and not (case.sorts and operation == "argmax"):
                    yield from _rows(run, name, operation, pair["by hand"], scores, {k: c[operation] for k, c in calls.items()})


def _calls(structure: Structure, scores: Tensor, direction: Tensor) -> dict[str, Callable[[], Tensor]]:
    leaf, seeds = scores.clone().requires_grad_(), torch.arange(len(scores), device=scores.device)

    def backward() -> Tensor:
        return torch.autograd.grad(structure.marginals(leaf), leaf, direction)[0]

    def log_partition() -> Tensor:
        return torch.autograd.grad(structure.log_partition(leaf).sum(), leaf)[0]

    return {
        "argmax": partial(structure.argmax, scores),
        "log-partition": partial(structure.log_partition, scores),
        "log-partition and backward": log_partition,
        "marginals": partial(structure.marginals, scores),
        "marginals and backward": backward,
        "entropy": partial(structure.entropy, scores),
        "sample": partial(structure.seeded_sample, scores, seeds),
    }


def _rows(
    run: Run, name: str, operation: str, structure: Structure, scores: Tensor, calls: dict[str, Callable[[], Tensor]]
) -> Iterator[Row]:
    found = {key: call().detach().cpu().double() for key, call in calls.items()}
    if operation == "sample":
        difference = max(float((~structure.contains(z.float())).sum()) for z in found.values())
    elif operation == "argmax":
        difference = _difference(*(structure.score(scores.double(), z) for z in found.values()))
    else:
        difference = _difference(*found.values())
    if not difference <= _TOLERANCE:
        raise AssertionError(f"{name}: the kernel and the engine differ by {difference:.1e}")
    for threads in run.threads:
        timings = run.time(calls, threads=threads)  # type: ignore[arg-type]
        row = Row("engine", name, threads, difference=None if operation == "sample" else difference)
        row.figures = {f"{key}, ms": timing for key, timing in timings.items()}
        row.figures["engine / by hand"] = timings["engine"].median / timings["by hand"].median
        yield row


def _difference(a: Tensor, b: Tensor) -> float:
    return float(((a - b).abs() / b.abs().clamp_min(1.0)).max())
