"""Every backend against the reference on sizes that enumeration cannot reach, in ragged batches that mix SIMD lanes."""

import functools

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import DIFFERENTIABLE, TREE_CASES, value_and_gradient
from oracles import assert_structures
from pullback.inference import operators

LENGTHS = [12, 20, 7, 0, 15, 1, 19, 20, 13, 2, 16, 18, 11, 20, 17, 3, 14, 12, 9]
SCORES = ["ordinary", "peaked", "forbidden"]
OTHERS = [case for case in TREE_CASES if case.backend != "reference"]


@pytest.fixture(params=OTHERS, ids=str)
def other(request):
    with operators.backend(request.param.backend):
        yield request.param


@pytest.fixture
def structure(other):
    return other.structure(torch.tensor(LENGTHS))


def by_reference(function, *args):
    with operators.backend("reference"):
        return function(*args)


def scores_of(kind):
    """Scores of float64 that float32 holds exactly, so that one answer serves both."""
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(len(LENGTHS), 20, 20, generator=generator)
    if kind == "peaked":
        return 20 * scores.double()
    if kind == "forbidden":  # half of the arcs, but a chain and the arcs from the root remain
        kept = torch.eye(20, dtype=torch.bool) | torch.ones(20, 20, dtype=torch.bool).triu(1).tril(1)
        scores[(torch.rand(scores.shape, generator=generator) < 0.5) & ~kept] = -torch.inf
    return scores.double()


@functools.cache
def expected(projective, multiroot, operation, kind):
    """The value and gradient of an operation by the reference."""
    tree = pb.DependencyTree(torch.tensor(LENGTHS), projective, multiroot)
    return by_reference(value_and_gradient, DIFFERENTIABLE[operation], tree, scores_of(kind))


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("operation", DIFFERENTIABLE)
def test_values_and_gradients(other, structure, dtype, operation, kind):
    found = value_and_gradient(DIFFERENTIABLE[operation], structure, scores_of(kind).to(other.device, dtype))
    right = expected(other.projective, other.multiroot, operation, kind)
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-8}[dtype]
    assert_close(found[0], right[0].to(found[0]), atol=tolerance, rtol=tolerance)
    assert_close(found[1], right[1].to(found[1]), atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize("high", [1, 2, 4], ids=["all-equal", "two-values", "four-values"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_argmax_of_tied_scores(other, structure, dtype, high, seed):
    """Projective: the same tree, ties broken by the one rule. Non-projective: a tree as good."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(high, (len(LENGTHS), 20, 20), generator=generator).to(other.device, dtype)
    found = structure.argmax(scores)
    right = by_reference(structure.argmax, scores.cpu()).to(found.device)
    assert_structures(other, found, LENGTHS)
    assert torch.equal(structure.score(scores, found), structure.score(scores, right))
    if other.projective:
        assert torch.equal(found, right)


def test_the_argmax_of_continuous_scores(other, structure, dtype):
    scores = other.scores(len(LENGTHS), n=20, dtype=dtype, seed=4)
    right = by_reference(structure.argmax, scores.double().cpu())
    assert torch.equal(structure.argmax(scores), right.to(scores))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17])
def test_every_size_of_chart(other, dtype, n):
    """Odd sizes, where vector loops have remainders; 17 sentences, where lanes do too."""
    scores = other.scores(17, n=n, dtype=dtype, seed=n)
    structure = other.structure()
    assert torch.equal(structure.argmax(scores), by_reference(structure.argmax, scores.double().cpu()).to(scores))
    mu = by_reference(structure.marginals, scores.double().cpu()).to(scores)
    assert_close(structure.marginals(scores), mu, atol={torch.float32: 2e-5, torch.float64: 1e-10}[dtype], rtol=0)
