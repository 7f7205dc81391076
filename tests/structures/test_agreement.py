"""Every backend against the reference on sizes that enumeration cannot reach, in ragged batches that mix SIMD lanes."""

import pytest
import torch
from torch.testing import assert_close

from cases import DIFFERENTIABLE, TREE_CASES, value_and_gradient
from oracles import assert_structures
from pullback.inference import operators

LENGTHS = [12, 20, 7, 0, 15, 1, 19, 20, 13, 2, 16, 18, 11, 20, 17, 3, 14, 12, 9]
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


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("operation", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_values_and_gradients(other, structure, dtype, operation, scale):
    scores = other.scores(len(LENGTHS), n=20, dtype=dtype, scale=scale, seed=1)
    found, gradient = value_and_gradient(operation, structure, scores)
    expected, expected_gradient = by_reference(value_and_gradient, operation, structure, scores.double().cpu())
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-8}[dtype]
    assert_close(found, expected.to(found), atol=tolerance, rtol=tolerance)
    assert_close(gradient, expected_gradient.to(gradient), atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize("forbidden", [0.0, 0.5])
def test_values_with_forbidden_arcs(other, structure, dtype, forbidden):
    """Half of the arcs are gone, but a chain and the root arcs remain."""
    scores = other.scores(len(LENGTHS), n=20, dtype=dtype, seed=2)
    out = torch.rand(scores.shape, generator=torch.Generator().manual_seed(3)) < forbidden
    chain = torch.eye(20, dtype=torch.bool) | torch.ones(20, 20, dtype=torch.bool).triu(1).tril(1)
    scores = scores.masked_fill((out & ~chain).to(other.device), -torch.inf)
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-8}[dtype]
    for operation in ("marginals", "log_partition", "entropy"):
        found, gradient = value_and_gradient(DIFFERENTIABLE[operation], structure, scores)
        expected, expected_gradient = by_reference(
            value_and_gradient, DIFFERENTIABLE[operation], structure, scores.double().cpu()
        )
        assert_close(found, expected.to(found), atol=tolerance, rtol=tolerance)
        assert_close(gradient, expected_gradient.to(gradient), atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize("high", [1, 2, 4], ids=["all-equal", "two-values", "four-values"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_argmax_of_tied_scores(other, structure, dtype, high, seed):
    """Projective: the same tree, ties broken by the one rule. Non-projective: a tree as good."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(high, (len(LENGTHS), 20, 20), generator=generator).to(other.device, dtype)
    found = structure.argmax(scores)
    expected = by_reference(structure.argmax, scores.cpu()).to(found.device)
    assert_structures(other, found, LENGTHS)
    assert torch.equal(structure.score(scores, found), structure.score(scores, expected))
    if other.projective:
        assert torch.equal(found, expected)


def test_the_argmax_of_continuous_scores(other, structure, dtype):
    scores = other.scores(len(LENGTHS), n=20, dtype=dtype, seed=4)
    expected = by_reference(structure.argmax, scores.double().cpu())
    assert torch.equal(structure.argmax(scores), expected.to(scores))


@pytest.mark.parametrize("n", range(1, 19))
def test_every_size_of_chart(other, dtype, n):
    """Odd sizes, where vector loops have remainders; 17 sentences, where lanes do too."""
    scores = other.scores(17, n=n, dtype=dtype, seed=n)
    structure = other.structure()
    assert torch.equal(structure.argmax(scores), by_reference(structure.argmax, scores.double().cpu()).to(scores))
    mu = by_reference(structure.marginals, scores.double().cpu()).to(scores)
    assert_close(structure.marginals(scores), mu, atol={torch.float32: 2e-5, torch.float64: 1e-10}[dtype], rtol=0)
