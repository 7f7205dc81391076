"""What the suite runs over: every structure on every backend, in every dtype.

A new structure inherits the promise tests (`structures/test_prom*.py`) by one more entry of `ENTRIES`, a new backend
by one of `BACKENDS`. A part of the suite, by the environment:

    PULLBACK_TEST_BACKENDS=cpu            only these backends, by comma
    PULLBACK_TEST_DTYPES=float32          only these dtypes, by comma
    PULLBACK_TEST_DEVICE=cuda             the tensors of every backend on this device
    PULLBACK_TEST_QUICK=1                 fewer sizes of the GPU's own tests
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import pullback as pb

BACKENDS = {"reference": "cpu", "cpu": "cpu"}  # the name of a backend: the device of its tensors
if torch.cuda.is_available():
    BACKENDS["cuda"] = "cuda"
elif os.environ.get("TRITON_INTERPRET") == "1":
    BACKENDS["cuda"] = "cpu"
DTYPES = {"float32": torch.float32, "float64": torch.float64}
QUICK = bool(os.environ.get("PULLBACK_TEST_QUICK"))
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-9}


def _chosen(variable: str, known: dict) -> list[str]:
    names = [name for name in os.environ.get(variable, "").split(",") if name] or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{variable} names {unknown}; known are {list(known)}")
    return names


backends = _chosen("PULLBACK_TEST_BACKENDS", BACKENDS)
dtypes = [DTYPES[name] for name in _chosen("PULLBACK_TEST_DTYPES", DTYPES)]


_TREES = [
    ("projective-multiroot", True, True),
    ("projective-singleroot", True, False),
    ("nonprojective-multiroot", False, True),
    ("nonprojective-singleroot", False, False),
]


def _sample(structure: pb.Structure, scores: Tensor) -> Tensor:
    return structure.sample(scores, torch.Generator(scores.device).manual_seed(7))


def _log_prob(structure: pb.Structure, scores: Tensor) -> Tensor:
    return structure.log_prob(scores, structure.argmax(scores))


Operation = Callable[[pb.Structure, Tensor], Tensor]
DIFFERENTIABLE: dict[str, Operation] = {
    "marginals": lambda structure, scores: structure.marginals(scores),
    "sparsemap": lambda structure, scores: structure.sparsemap(scores),
    "log_partition": lambda structure, scores: structure.log_partition(scores),
    "entropy": lambda structure, scores: structure.entropy(scores),
    "log_prob": _log_prob,
}
OPERATIONS: dict[str, Operation] = {
    "argmax": lambda structure, scores: structure.argmax(scores),
    "sample": _sample,
    **DIFFERENTIABLE,
}
PER_PART = ["argmax", "sample", "marginals", "sparsemap"]  # results `[..., *parts]`; the others are `[...]`


def value_and_gradient(operation: Operation, structure: pb.Structure, scores: Tensor) -> tuple[Tensor, Tensor]:
    """The result and the gradient of a weighted sum of it, the weights different for each entry."""
    leaf = scores.detach().clone().requires_grad_()
    result = operation(structure, leaf)
    weights = torch.linspace(0.5, 1.5, max(result.numel(), 1), dtype=result.dtype, device=result.device)
    (result * weights[: result.numel()].reshape(result.shape)).sum().backward()
    assert leaf.grad is not None
    return result.detach(), leaf.grad


@dataclass(frozen=True, eq=False)
class Entry:
    """A structure for the promise tests: how to make it, its parts and its enumeration; on one backend.

    Attributes:
        name: of the tests.
        make: from one tensor for each size, `[B]`, and options (`validate`) to the structure.
        parts: the shape of the parts of a padded batch.
        sizes: those of each example of the batch; the first is as large as `parts`, others are empty or of one position.
        enumerate: from the sizes of one example to all its structures.
        gibbs: whether it has a distribution, with all the operations on it.
        projects: whether it has SparseMAP.
        own: what a structure adds to the score of each of `[S, *parts]`, `[S]`, beside its parts' scores.
        holds: the dtype of tensors of its own, if it has some: results have the dtype that both promote to.
        twice: whether marginals can be differentiated twice, rather than say that they cannot.
        one_rule: whether ties break in the same way on every backend.
        converts: whether it has conversions for people, one of `CONVERSIONS` in `structures/test_padded_structures.py`.
        infeasible: whether there is no structure if all parts are forbidden.
        fixed: whether parts of another shape need another structure: then there are no structures of one size.
        free: the arguments of `make` for a structure whose sizes are those of the scores.
        shape: from a number to the shape of the parts of such a structure.
        sized: from that number to what `enumerate` takes.
        smallest: the smallest such number.
        kind: of dependency trees: whether they are projective, and whether they may have several roots.
        backend: which one runs it.
    """

    name: str
    make: Callable[..., pb.Structure]
    parts: tuple[int, ...]
    sizes: list[tuple[int, ...]]
    enumerate: Callable[..., Tensor]
    gibbs: bool = True
    projects: bool = True
    own: Callable[[Tensor], Tensor] = lambda z: z.new_zeros(len(z))
    holds: torch.dtype | None = None
    twice: bool = False
    one_rule: bool = True
    converts: bool = True
    infeasible: bool = True
    fixed: bool = False
    free: tuple[Any, ...] = (None,)
    shape: Callable[[int], tuple[int, ...]] = lambda n: (n, n)
    sized: Callable[[int], tuple[int, ...]] = lambda n: (n,)
    smallest: int = 0
    kind: tuple[bool, bool] | None = None
    backend: str = "cpu"

    def __str__(self) -> str:
        return f"{self.name}-{self.backend}"

    @property
    def event_dims(self) -> int:
        return len(self.parts)

    @property
    def projective(self) -> bool:
        return self.kind is not None and self.kind[0]

    @property
    def multiroot(self) -> bool:
        return self.kind is not None and self.kind[1]

    @property
    def device(self) -> str:
        return os.environ.get("PULLBACK_TEST_DEVICE") or BACKENDS.get(self.backend, "cpu")

    @property
    def is_slow(self) -> bool:
        """Whether only small sizes are to be had: plain PyTorch, or a GPU's kernels in an interpreter."""
        interpreted = self.backend == "cuda" and not torch.cuda.is_available()
        return self.name != "categorical" and (self.backend == "reference" or interpreted)

    @property
    def operations(self) -> dict[str, Operation]:
        """What it offers of `OPERATIONS`."""
        names = OPERATIONS if self.gibbs else ("argmax", "sparsemap")
        return {name: OPERATIONS[name] for name in names if self.projects or name != "sparsemap"}

    @property
    def differentiable(self) -> dict[str, Operation]:
        return {name: operation for name, operation in self.operations.items() if name in DIFFERENTIABLE}

    def result(self, dtype: torch.dtype) -> torch.dtype:
        """The dtype of results for scores of this one."""
        return dtype if self.holds is None else torch.promote_types(dtype, self.holds)

    def whole(self, *sizes: Tensor) -> pb.Structure:
        """A structure with these sizes, or those of the scores; values are checked on every device."""
        return self.make(*(sizes or self.free), validate=True)

    def random(self, *batch: int, n: int, dtype: torch.dtype = torch.float64, scale: float = 1.0, seed: int = 0) -> Tensor:
        """Normal scores without padding, the same on every backend, dtype and device."""
        generator = torch.Generator().manual_seed(seed)
        values = scale * torch.randn(*batch, *self.shape(n), generator=generator, dtype=torch.float64)
        return values.to(self.device, dtype)

    def structure(self, rows: slice = slice(None), **options: Any) -> pb.Structure:
        return self.make(*torch.tensor(self.sizes)[rows].unbind(1), **options)

    def all_of(self, example: int) -> Tensor:
        """Every structure of an example, `[S, *parts]`, padded."""
        z = self.enumerate(*self.sizes[example])
        padding = [p for full, own in zip(reversed(self.parts), reversed(z.shape[1:]), strict=True) for p in (0, full - own)]
        return torch.nn.functional.pad(z, padding).double()

    def scores(self, seed: int = 0, scale: float = 1.0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return scale * torch.randn(len(self.sizes), *self.parts, generator=generator, dtype=torch.float64)


class Hops(pb.DynamicProgram):
    """Segments of one or two positions, as a user would write them: [i, w]."""

    event_dims = 2

    def value(self, scores: Tensor, combine: Any) -> Tensor:
        ends = [scores.new_zeros(len(scores))]
        for j in range(1, scores.shape[1] + 1):
            ends.append(combine(torch.stack([ends[j - w] + scores[:, j - w, w - 1] for w in (1, 2) if w <= j], 1), 1))
        return torch.stack(ends, 1)


class Brackets(pb.DynamicProgram):
    """Binary trees, as a user would write them."""

    event_dims = 2

    def value(self, scores: Tensor, combine: Any) -> Tensor:
        n = scores.shape[1]
        inside: dict[tuple[int, int], Tensor] = {(i, i): scores[:, i, i] for i in range(n)}
        for width in range(1, n):
            for i in range(n - width):
                j = i + width
                splits = [inside[i, k] + inside[k + 1, j] for k in range(i, j)]
                inside[i, j] = scores[:, i, j] + combine(torch.stack(splits, 1), 1)
        return torch.stack([scores.new_zeros(len(scores)), *(inside[0, j] for j in range(n))], 1)


TRANSITIONS = torch.tensor([[0.5, -1.0, 0.25], [1.5, 0.0, -0.75], [-0.25, 1.0, 0.5]])
START, END = torch.tensor([0.25, -0.5, 0.0]), torch.tensor([-0.25, 0.75, 0.5])
"""Of the factored chain, exact in every dtype."""


def _of_pairs(z: Tensor) -> Tensor:
    """The transitions, start and end of each of `[S, n, 3]`, zero in the padding, by looking them up."""
    tags = [[int(tag) for tag, used in zip(one.argmax(1), one.sum(1), strict=True) if used] for one in z]
    joined = [sum(float(TRANSITIONS[a, b]) for a, b in itertools.pairwise(t)) for t in tags]
    ends = [float(START[t[0]] + END[t[-1]]) if t else 0.0 for t in tags]
    return torch.tensor(joined, dtype=torch.float64) + torch.tensor(ends, dtype=torch.float64)


def _of_labels(z: Tensor) -> Tensor:
    """The transitions between the segments of each of `[S, n, W, 3]`, by looking them up."""
    labels = [[label for _, _, label in one.nonzero().tolist()] for one in z]
    return torch.tensor([sum(float(TRANSITIONS[a, b]) for a, b in itertools.pairwise(t)) for t in labels], dtype=torch.float64)


def _trees(name: str, projective: bool, multiroot: bool) -> Entry:
    return Entry(
        name, lambda n, **options: pb.DependencyTree(n, projective, multiroot, **options), (4, 4), [(4,), (2,), (0,), (1,)],
        lambda n: pb.DependencyTree(projective=projective, multiroot=multiroot).enumerate(n), one_rule=projective,
        kind=(projective, multiroot),
    )  # fmt: skip


_TARGET = torch.tensor([1, 2, 2])  # with a repeated symbol, which takes a blank in between
EDGES = [(5, 3), (3, 9), (5, 9), (0, 2), (9, 2), (3, 2), (5, 2), (5, 0), (9, 8), (7, 5)]  # the last two on no path

ENTRIES = [
    Entry("categorical", pb.Categorical, (4,), [(), (), ()], lambda n=4: pb.Categorical().enumerate(n), twice=True,
          converts=False, free=(), shape=lambda n: (n,), smallest=1),
    *(_trees(*kind) for kind in _TREES),
    Entry("chain", pb.LinearChain, (4, 3, 3), [(4,), (2,), (0,), (1,)], lambda n: pb.LinearChain().enumerate(n, 3),
          shape=lambda n: (n, 3, 3)),
    Entry("factored chain", lambda n, **options: pb.FactoredChain(TRANSITIONS, START, END, n, **options), (4, 3),
          [(4,), (2,), (0,), (1,)], lambda n: pb.FactoredChain(TRANSITIONS).enumerate(n, 3), projects=False, own=_of_pairs,
          holds=torch.float32, shape=lambda n: (n, 3)),
    Entry("subset", pb.Subset, (5,), [(2, 5), (1, 4), (0, 1), (3, 3)], lambda k, n: pb.Subset(k).enumerate(n),
          free=(2, None), shape=lambda n: (n,), sized=lambda n: (2, n), smallest=2),
    Entry("at most", lambda k, n, **o: pb.Subset(k, n, True, **o), (5,), [(2, 5), (1, 4), (0, 1), (4, 3)],
          lambda k, n: pb.Subset(k, at_most=True).enumerate(n), infeasible=False, free=(2, None), shape=lambda n: (n,),
          sized=lambda n: (2, n)),
    Entry("knapsack", lambda b, n, **o: pb.Knapsack([3, 1, 2, 2, 1], b, n, **o), (5,), [(4, 5), (2, 3), (1, 0), (3, 1)],
          lambda b, n: pb.Knapsack([3, 1, 2, 2, 1], b).enumerate(n), infeasible=False, fixed=True),
    Entry("path", lambda **o: pb.ShortestPath(EDGES, 5, 2, **o), (10,), [(), (), ()],
          lambda: pb.ShortestPath(EDGES, 5, 2).enumerate(), free=(), fixed=True),
    Entry("grid", lambda **o: pb.ShortestPath.grid(3, 4, **o), (3, 4), [(), (), ()],
          lambda: pb.ShortestPath.grid(3, 4).enumerate(), free=(), fixed=True),
    Entry("segmentation", pb.Segmentation, (5, 3, 2), [(5,), (3,), (0,), (1,)], lambda n: pb.Segmentation().enumerate(n, 3, 2),
          shape=lambda n: (n, 3, 2)),
    Entry("semi-Markov", lambda n, **options: pb.Segmentation(n, TRANSITIONS, **options), (5, 2, 3), [(5,), (3,), (0,), (1,)],
          lambda n: pb.Segmentation().enumerate(n, 2, 3), projects=False, own=_of_labels,
          holds=torch.float32, shape=lambda n: (n, 2, 3)),
    Entry("own hops", Hops, (5, 2), [(5,), (3,), (0,), (1,)], lambda n: pb.Segmentation().enumerate(n, 2, 1).squeeze(-1),
          converts=False, shape=lambda n: (n, 2)),
    Entry("own brackets", Brackets, (5, 5), [(5,), (3,), (0,), (1,)], lambda n: pb.BinaryTree().enumerate(n), converts=False),
    Entry("binary tree", pb.BinaryTree, (5, 5), [(5,), (3,), (0,), (1,)], lambda n: pb.BinaryTree().enumerate(n)),
    Entry("any moves", pb.Alignment, (4, 5), [(4, 5), (3, 2), (0, 0), (1, 4)], lambda n, m: pb.Alignment().enumerate(n, m),
          free=(None, None), sized=lambda n: (n, n)),
    Entry(
        "forward moves", lambda n, m, **o: pb.Alignment(n, m, "forward", **o), (4, 5), [(4, 5), (2, 3), (0, 0), (1, 4)],
        lambda n, m: pb.Alignment(moves="forward").enumerate(n, m), free=(None, None),
        shape=lambda n: (n, n + 2), sized=lambda n: (n, n + 2), smallest=1,
    ),
    Entry("ctc", lambda t, length, **o: pb.CTC(_TARGET, length, t, **o), (5, 3), [(5, 3), (4, 2), (0, 0), (1, 1)],
          lambda t, length: pb.CTC(_TARGET[:length]).enumerate(t, 3), free=(None, 2), shape=lambda n: (n, 3),
          sized=lambda n: (n, 2), smallest=2),
    Entry(
        "matching", pb.Matching, (3, 4), [(3, 4), (2, 2), (0, 0), (1, 3)],
        lambda n, m: pb.Matching().enumerate(n, m), gibbs=False, free=(None, None), sized=lambda n: (n, n),
    ),
]  # fmt: skip


def on_backends(entries: list[Entry]) -> list[Entry]:
    return [replace(entry, backend=backend) for backend in backends for entry in entries]


FEW = [
    entry for entry in ENTRIES
    if entry.kind in (None, (True, True), (False, False)) and not entry.name.startswith("own") and not entry.fixed
]  # fmt: skip
"""Each structure, of dependency trees half of the kinds."""
TREES = [entry for entry in ENTRIES if entry.kind is not None]
TREE_CASES = on_backends(TREES)
CATEGORICAL_CASES = [entry for entry in on_backends(FEW) if entry.name == "categorical"]
CATEGORICAL = CATEGORICAL_CASES[-1]
