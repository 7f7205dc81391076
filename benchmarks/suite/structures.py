"""Chains, binary trees, segmentations, subsets, alignments and matchings against what people use instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import torch
from torch import Tensor

from benchmarks.comparison import Contender, Row, Run, largest_difference
from benchmarks.peers import assignment, crf, plain, soft_dtw
from benchmarks.problem import Problem
from pullback import Alignment, BinaryTree, LinearChain, Matching, Segmentation, Structure, Subset

_NO_LP_SPARSEMAP = "" if find_spec("lpsmap") else "lp-sparsemap is not installed: see benchmarks/README.md"
_MATCHINGS = ((64, 30, 30), (208, 20, 300), (208, 100, 300), (32, 300, 300), (5, 1024, 1024), (1, 1000, 1000))
Peers = dict[str, list[Callable[[Problem], Contender]]]


def _score_difference(problem: Problem, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
    values = [problem.structure.score(problem.scores.double(), z.double()) for (z,) in (ours, theirs)]
    return (values[0] - values[1]).abs().max().item()


def _first_difference(problem: Problem, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
    return largest_difference(problem, ours[:1], theirs[:1])  # type: ignore[arg-type]  # directions differ


def _calls(problem: Problem) -> dict[str, Callable[[], Any]]:
    structure, scores = problem.structure, problem.scores
    leaf = scores.clone().requires_grad_()

    def backward(operation: Callable[[Tensor], Tensor]) -> Callable[[], Any]:
        def call() -> tuple[Tensor, Tensor]:
            mu = operation(leaf)
            return mu.detach(), torch.autograd.grad(mu, leaf, problem.direction)[0]

        return call

    def log_partition() -> Tensor:
        return torch.autograd.grad(structure.log_partition(leaf).sum(), leaf)[0]

    return {
        "argmax": lambda: structure.argmax(scores),
        "marginals": lambda: structure.marginals(scores),
        "marginals and backward": backward(structure.marginals),
        "log-partition and backward": log_partition,
        "SparseMAP and backward": backward(structure.sparsemap),
    }


def _rows(run: Run, name: str, label: str, structure: Structure, parts: tuple[int, ...], peers: Peers) -> Iterator[Row]:
    for threads in run.threads:
        problem = Problem(label, threads, structure, parts, run.batch, run.device)
        calls = _calls(problem)
        for operation, makers in peers.items():
            difference = _score_difference if operation == "argmax" else _first_difference
            case = replace(problem, label=f"{operation}, {label}")
            row = run.compare(f"{name}: {operation}", case, calls[operation], makers, difference)  # type: ignore[arg-type]
            if operation.startswith("SparseMAP"):
                row.note += _NO_LP_SPARSEMAP
            yield row


def chain(run: Run) -> Iterator[Row]:
    """Tag sequences, against pytorch-crf (emissions and transitions only) and torch-struct."""
    for n, tags in ((30, 5), (50, 20)):
        peers: Peers = {
            "argmax": [crf.decode, crf.chain("argmax")],
            "marginals": [crf.chain("marginals")],
            "marginals and backward": [crf.chain("backward")],
            "SparseMAP and backward": [],
        }
        yield from _rows(run, "chain", f"n = {n}, C = {tags}", LinearChain(), (n, tags, tags), peers)
        yield from _likelihood(run, n, tags)


def _likelihood(run: Run, n: int, tags: int) -> Iterator[Row]:
    """The log-likelihood of given tags with its gradient: on scores, and from emissions through `combine`."""
    chain = LinearChain()
    for threads in run.threads:
        problem = Problem(f"n = {n}, C = {tags}", threads, chain, (n, tags, tags), run.batch, run.device)
        scores, emissions = problem.scores.clone().requires_grad_(), problem.emissions.clone().requires_grad_()
        gold = problem.from_tags(problem.tags)
        label = f"log-likelihood and backward, {problem.label}"
        given = partial(_gradient, lambda s, z=gold: chain.log_prob(s, z), scores)
        combined = partial(
            _gradient, lambda x, z=gold, t=problem.transitions: chain.log_prob(chain.combine(x, t), z), emissions
        )
        for name, call in {"on scores": given, "from emissions": combined}.items():
            case = replace(problem, label=f"{label}, {name}")
            yield run.compare("chain: log-likelihood", case, call, [crf.likelihood], _emission_difference)  # type: ignore[arg-type]


def _gradient(value: Callable[[Tensor], Tensor], leaf: Tensor) -> Tensor:
    return torch.autograd.grad(value(leaf).sum(), leaf)[0]


def _emission_difference(_: Any, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> float:
    """A score holds one emission: its gradient is the sum over the tags before."""
    emissions = ours[0].sum(-2) if ours[0].dim() > theirs[0].dim() else ours[0]
    return (emissions - theirs[0]).abs().max().item()


def binary_tree(run: Run) -> Iterator[Row]:
    """Binary trees, against torch-struct's TreeCRF."""
    for n in (30, 50):
        peers: Peers = {
            "argmax": [crf.tree("argmax")],
            "marginals": [crf.tree("marginals")],
            "marginals and backward": [crf.tree("backward")],
            "SparseMAP and backward": [],
        }
        yield from _rows(run, "binary tree", f"n = {n}", BinaryTree(), (n, n), peers)


def segmentation(run: Run) -> Iterator[Row]:
    """Segmentations, against torch-struct's SemiMarkovCRF, which scores transitions between labels too (C times the work).

    With transitions, against a loop in plain PyTorch, too.
    """
    peers: Peers = {
        "argmax": [crf.segments("argmax")],
        "marginals": [crf.segments("marginals")],
        "marginals and backward": [crf.segments("backward")],
        "SparseMAP and backward": [],
    }
    yield from _rows(run, "segmentation", "n = 30, W = 6, C = 5", Segmentation(), (30, 6, 5), peers)
    for batch in (1, 8):  # of which torch-struct takes 2 GB each
        yield from _semi_markov(run, batch, [crf.segments] if batch == 1 else [])


def _semi_markov(run: Run, batch: int, libraries: list[Callable[[str], Any]]) -> Iterator[Row]:
    """With transitions between labels: gradients in them, too."""
    n, widths, labels = 200, 10, 10
    transitions = torch.randn(labels, labels, generator=torch.Generator().manual_seed(2)).to(run.device).requires_grad_()
    structure, fixed = Segmentation(transitions=transitions), Segmentation(transitions=transitions.detach())
    for threads in run.threads:
        problem = Problem("", threads, fixed, (n, widths, labels), batch, run.device)
        leaf = problem.scores.clone().requires_grad_()

        def log_partition(leaf: Tensor = leaf) -> tuple[Tensor, ...]:
            return torch.autograd.grad(structure.log_partition(leaf).sum(), (leaf, transitions))

        calls = {
            "argmax": partial(fixed.argmax, problem.scores),
            "marginals": partial(fixed.marginals, problem.scores),
            "log-partition and backward": log_partition,
        }
        for operation, call in calls.items():
            label = f"{operation}, transitions, n = {n}, W = {widths}, C = {labels}, batch {batch}"
            peers = [make(operation.removesuffix(" and backward")) for make in (*libraries, plain.semi_markov)]
            difference = _score_difference if operation == "argmax" else _first_difference
            yield run.compare("segmentation: transitions", replace(problem, label=label), call, peers, difference)  # type: ignore[arg-type]


def subset(run: Run) -> Iterator[Row]:
    """Subsets, against the same recursion in plain PyTorch."""
    for k, n in ((10, 100), (50, 1000)):
        peers: Peers = {"argmax": [], "marginals": [plain.subset_marginals(k)], "SparseMAP and backward": []}
        yield from _rows(run, "subset", f"{k} of {n}", Subset(k), (n,), peers)


def alignment(run: Run) -> Iterator[Row]:
    """Monotone alignments, against pysdtw (soft dynamic time warping) and a loop over anti-diagonals in plain PyTorch."""
    for n in (50, 200):
        both = [soft_dtw.alignment, plain.alignment]
        peers: Peers = {"argmax": [], "log-partition and backward": both, "SparseMAP and backward": []}
        if n == 200:
            del peers["SparseMAP and backward"]
        yield from _rows(run, "alignment", f"{n} x {n}, any moves", Alignment(), (n, n), peers)


def matching(run: Run) -> Iterator[Row]:
    """Matchings, against scipy's assignment in a loop and lapx's in batches, both of which return columns and no tensor `z`."""
    solvers = [assignment.scipy, assignment.lapx]
    for batch, n, m in _MATCHINGS:
        for dtype, threads in product((torch.float32, torch.float64), run.threads):
            label = f"argmax, {batch} x {n} x {m}, {str(dtype).removeprefix('torch.')}"
            problem = Problem(label, threads, Matching(), (n, m), batch, run.device, dtype)
            call = partial(problem.structure.argmax, problem.scores)
            yield run.compare("matching: argmax", problem, call, solvers, _score_difference)  # type: ignore[arg-type]
    yield from _rows(run, "matching", "30 x 30", Matching(), (30, 30), {"SparseMAP and backward": []})
