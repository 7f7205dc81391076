"""Every backend against the reference on sizes that enumeration cannot reach, in ragged batches that mix SIMD lanes."""

import functools

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import DIFFERENTIABLE, TREE_CASES, value_and_gradient
from each import each
from oracles import assert_structures
from pullback.inference.front.family import backend

LENGTHS = [12, 18, 7, 0, 15, 1, 17, 18, 13, 2, 16, 5, 11, 18, 14, 3, 6, 12, 9]
OTHERS = [case for case in TREE_CASES if case.backend != "reference"]


@pytest.fixture(params=OTHERS, ids=str)
def other(request):
    with backend(request.param.backend):
        yield request.param


@pytest.fixture
def structure(other):
    return other.whole(torch.tensor(LENGTHS))


def by_reference(function, *args):
    with backend("reference"):
        return function(*args)


def mixed_scores():
    """In turn ordinary, peaked and with half of the arcs forbidden; float32 holds them exactly."""
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(len(LENGTHS), 18, 18, generator=generator)
    scores[1::3] *= 20
    kept = torch.eye(18, dtype=torch.bool) | torch.ones(18, 18, dtype=torch.bool).triu(1).tril(1)  # chains from roots
    out = (torch.rand(scores.shape, generator=generator) < 0.5) & ~kept
    out[0::3] = out[1::3] = False
    return scores.double().masked_fill(out, -torch.inf)


@functools.cache
def expected(projective, multiroot, operation):
    """The value and gradient of an operation by the reference, one answer for all dtypes."""
    tree = pb.DependencyTree(torch.tensor(LENGTHS), projective, multiroot)
    return by_reference(value_and_gradient, DIFFERENTIABLE[operation], tree, mixed_scores())


@pytest.mark.parametrize("operation", ["marginals", "sparsemap", "log_partition", "entropy"])
def test_values_and_gradients(other, structure, dtype, operation):
    scores = mixed_scores().to(other.device, dtype)
    value, gradient = value_and_gradient(DIFFERENTIABLE[operation], structure, scores)
    right_value, right_gradient = expected(other.projective, other.multiroot, operation)
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-8}[dtype]
    assert_close(value, right_value.to(value), atol=tolerance, rtol=tolerance)
    assert_close(gradient, right_gradient.to(gradient), atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize("high", [1, 2, 4], ids=["all-equal", "two-values", "four-values"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_argmax_of_tied_scores(other, structure, dtype, high, seed):
    """Projective: the same tree, ties broken by the one rule. Non-projective: a tree as good."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(high, (len(LENGTHS), 18, 18), generator=generator).to(other.device, dtype)
    found = structure.argmax(scores)
    right = by_reference(structure.argmax, scores.cpu()).to(found.device)
    assert_structures(other, found, LENGTHS)
    assert torch.equal(structure.score(scores, found), structure.score(scores, right))
    if other.projective:
        assert torch.equal(found, right)


def test_the_argmax_of_continuous_scores(other, structure, dtype):
    scores = other.random(len(LENGTHS), n=18, dtype=dtype, seed=4)
    right = by_reference(structure.argmax, scores.double().cpu())
    assert torch.equal(structure.argmax(scores), right.to(scores))


def sized_scores(n):
    return torch.randn(17, n, n, generator=torch.Generator().manual_seed(n)).double()


@functools.cache
def expected_at_size(projective, multiroot, n):
    tree = pb.DependencyTree(projective=projective, multiroot=multiroot)
    return by_reference(tree.argmax, sized_scores(n)), by_reference(tree.marginals, sized_scores(n))


@each("n", [1, 2, 3, 5, 7, 8, 9, 12, 15])
def test_odd_sizes(other, dtype, n):
    """Where vector loops over a chart have remainders; 17 sentences, where lanes do too."""
    scores = sized_scores(n).to(other.device, dtype)
    z, mu = expected_at_size(other.projective, other.multiroot, n)
    assert torch.equal(other.whole().argmax(scores), z.to(scores))
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-10}[dtype]
    assert_close(other.whole().marginals(scores), mu.to(scores), atol=tolerance, rtol=0)
