"""Paths: graphs that are none, edges that no path uses, and structures that travel or are gone before their backward pass."""

from __future__ import annotations

import gc
import math
import pickle

import pytest
import torch

import pullback as pb

EDGES = [(10, 3), (3, 7), (10, 7), (7, 2), (3, 2), (10, 2), (2, 99), (5, 10), (7, 1000), (10, 3)]


@pytest.mark.parametrize("make", [lambda: pb.ShortestPath(EDGES, 10, 2), lambda: pb.ShortestPath.grid(4, 3, "straight")])
def test_against_enumeration(make):
    """With parallel edges, edges on no path, and nodes in any order."""
    paths = make()
    z = paths.enumerate().double()
    scores = torch.randn(5, *z.shape[1:], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    totals = scores.flatten(1) @ z.flatten(1).T
    torch.testing.assert_close(paths.log_partition(scores), totals.logsumexp(1))
    torch.testing.assert_close(paths.marginals(scores).flatten(1), totals.softmax(1) @ z.flatten(1))
    assert torch.equal(paths.argmax(scores), z[totals.argmax(1)])
    torch.testing.assert_close(paths.topk(scores, 4).scores.T, totals.topk(4).values)
    assert paths.contains(z).all()
    assert not paths.contains(torch.zeros_like(z)).any()
    assert len(z) == (6 if "source" in repr(paths) else 10)


def test_a_long_chain_of_nodes():
    """Of 20,000 edges, one after the other, each twice."""
    tails = torch.arange(20_000).repeat_interleave(2)
    edges = torch.stack([tails, tails + 1], 1)[torch.randperm(40_000, generator=torch.Generator().manual_seed(0))]
    paths = pb.ShortestPath(edges, 0, 20_000)
    torch.testing.assert_close(paths.log_partition(torch.zeros(40_000)), torch.tensor(20_000 * math.log(2)))
    assert paths.argmax(torch.zeros(40_000)).sum() == 20_000


def test_a_path_without_edges():
    paths, scores = pb.ShortestPath([], 3, 3), torch.zeros(2, 0)
    assert paths.path(paths.argmax(scores)) == [[3], [3]]
    assert paths.from_path([[3], [3]]).shape == (2, 0)
    assert paths.log_partition(scores).tolist() == [0.0, 0.0]
    assert pb.ShortestPath.grid(1, 1).argmax(torch.full((1, 1), -2.0)).tolist() == [[1.0]]


def test_results_outlive_the_structure():
    scores = torch.randn(2, 11, requires_grad=True)
    mu = pb.ShortestPath([*EDGES, (4, 5)], 10, 2).marginals(scores)
    gc.collect()
    mu.square().sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.any()


def test_structures_can_be_sent_to_other_processes():
    for paths in (pb.ShortestPath(EDGES, 10, 2), pb.ShortestPath.grid(2, 3)):
        assert pickle.loads(pickle.dumps(paths)) == paths
    assert pb.ShortestPath(EDGES, 10, 2) != pb.ShortestPath(EDGES, 10, 7)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_edges_on_no_path_are_no_parts(bad):
    """Scores, structures and gradients there may be anything; with every operation and every estimator."""
    paths = pb.ShortestPath([(0, 1), (1, 3), (0, 2), (2, 3), (7, 8), (3, 4)], 0, 3)
    clean = torch.tensor([0.0, 0.5, 0.0, 1.0, 0.0, 0.0])
    outside = torch.tensor([False, False, False, False, True, True])
    scores = clean.masked_fill(outside, bad)
    assert paths.allowed(scores).tolist() == [True] * 4 + [False] * 2
    z, gold = paths.argmax(scores), paths.from_path([0, 1, 3])
    assert torch.equal(z, paths.argmax(clean))
    assert paths.contains(z.masked_fill(outside, bad))
    for other in (z, z.masked_fill(outside, bad)):
        assert paths.score(scores, other) == 1
        torch.testing.assert_close(paths.log_prob(scores, other), paths.log_prob(clean, z))
    assert paths.kl(scores, clean) == paths.kl(clean, scores) == 0
    assert torch.equal(paths.topk(scores, 2).structures, paths.topk(clean, 2).structures)
    assert paths.sparsemap_solution(scores, warm_start=z.masked_fill(outside, bad)).converged
    weight = torch.tensor([0.3, -0.2, 0.5, 0.1, 9.0, 9.0])
    estimators = [
        pb.SPIGOT(), pb.LPGD(), pb.AdaptiveIMLE(), pb.Standardized(pb.STEIdentity()), pb.Standardized(pb.SPIGOT()),
        pb.ReinMax(), pb.PerturbedArgmax(), pb.PerturbedSparseMAP(), pb.SparseMAP(), pb.Marginals(), pb.SampledSTE(),
        pb.STEIdentity(), pb.ScoreFunction(), pb.SparseExpectation(), pb.Blackbox(), pb.IMLE(),
    ]  # fmt: skip
    for estimator in estimators:
        leaf = scores[None].clone().requires_grad_()
        estimator.objective(paths, leaf, lambda z: (z * weight).sum(-1)).sum().backward()
        assert leaf.grad.isfinite().all(), estimator
        assert not leaf.grad[0, outside].any(), estimator
    for loss in (
        pb.losses.CrossEntropy(),
        pb.losses.Perceptron(),
        pb.losses.Hinge(),
        pb.losses.SparseMAPLoss(),
        pb.losses.PerturbedLoss(),
    ):
        leaf = scores[None].clone().requires_grad_()
        value = loss(paths, leaf, gold[None]).sum()
        value.backward()
        assert value.isfinite(), loss
        assert leaf.grad.isfinite().all(), loss
        assert not leaf.grad[0, outside].any(), loss


def test_memory_of_sparsemap_on_a_large_graph(monkeypatch):
    """Active sets have no more structures than the search may find; and an error says what there was no memory for."""
    asked = []

    def full(batch, parts, room, width):
        asked.append(4 * batch * room * width)
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 49284624640 bytes.")

    monkeypatch.setattr("pullback.inference.sparsemap.compiled.make_result", full)
    nodes = torch.arange(20_000)
    paths = pb.ShortestPath(torch.cat([torch.stack([nodes, nodes + step], 1) for step in (1, 2, 3)]), 0, 20_000)
    with pytest.raises(
        MemoryError, match=r"structures with up to 20000 of 60000 parts, for a batch of 1: pass a smaller max_iter"
    ):
        paths.sparsemap(torch.zeros(60_000))
    assert asked[0] < 2**29


def test_ties():
    """The first of the edges that lead to a node, and of equal steps the diagonal one, then down."""
    assert pb.ShortestPath(EDGES, 10, 2).argmax(torch.zeros(10)).nonzero().flatten().tolist() == [0, 1, 3]
    zeros = torch.zeros(3, 2)
    assert pb.ShortestPath.grid(3, 2).path(pb.ShortestPath.grid(3, 2).argmax(zeros)) == [(0, 0), (1, 0), (2, 1)]
    grid = pb.ShortestPath.grid(3, 2, "straight")
    assert grid.path(grid.argmax(zeros)) == [(0, 0), (0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: pb.ShortestPath([(0, 1), (1, 2), (2, 1), (2, 3)], 0, 3),
            ValueError,
            r"edges have a cycle: (1 -> 2 -> 1|2 -> 1 -> 2)",
        ),
        (lambda: pb.ShortestPath([(0, 3), (7, 7)], 0, 3), ValueError, "edges have a cycle: 7 -> 7"),
        (lambda: pb.ShortestPath([(0, 1), (3, 2)], 0, 3), ValueError, "no path leads from the source 0 to the target 3"),
        (lambda: pb.ShortestPath([(0, -1)], 0, 3), ValueError, r"edges\[0\] is \[0, -1\]"),
        (lambda: pb.ShortestPath([(0.5, 1)], 0, 1), TypeError, "edges have dtype float64; they must be integers"),
        (lambda: pb.ShortestPath([0, 1], 0, 1), ValueError, r"edges has shape \[2\]"),
        (lambda: pb.ShortestPath([(0, 1)], 0.0, 1), ValueError, "source is 0.0; it must be an integer"),
        (
            lambda: pb.ShortestPath([(0, 1)], 0, 1).argmax(torch.zeros(2, 3)),
            ValueError,
            r"scores has shape \[..., 3\]; .* are \[1\]",
        ),
        (lambda: pb.ShortestPath.grid(2, 2).marginals(torch.zeros(2, 3)), ValueError, r"scores has shape \[..., 2, 3\]"),
        (lambda: pb.ShortestPath.grid(0, 2), ValueError, "n is 0; it must be an integer of at least 1"),
        (lambda: pb.ShortestPath.grid(2, 2, "up"), ValueError, "moves is 'up'; it must be one of 'any', 'straight'"),
        (
            lambda: pb.ShortestPath(EDGES, 10, 2).from_path([10, 99]),
            ValueError,
            "does not lead from the source 10 to the target 2",
        ),
        (
            lambda: pb.ShortestPath(EDGES, 10, 2).from_path([10, 5, 2]),
            ValueError,
            r"path\[1\] is 5; no edge leads to it from 10",
        ),
        (lambda: pb.ShortestPath(EDGES, 10, 2).from_path([]), ValueError, "path is empty; it must lead from the source 10"),
        (
            lambda: pb.ShortestPath.grid(2, 3).argmax(torch.full((2, 2, 3), -torch.inf)),
            ValueError,
            "^example 0 of the batch has no feasible path",
        ),
        (
            lambda: pb.ShortestPath.grid(2, 2).from_path([(0, 0), (2, 1)]),
            ValueError,
            "row of path.* is 2; rows are from 0 to 1",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_projections_compile_for_one_network_after_another():
    torch._dynamo.reset()
    compiled = torch.compile(lambda paths, s: paths.sparsemap(s), fullgraph=True, backend="eager")
    for paths in (pb.ShortestPath.grid(2, 3), pb.ShortestPath.grid(2, 3, "straight")):
        scores = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(compiled(paths, scores), paths.sparsemap(scores))
