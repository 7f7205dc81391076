"""Sparsemax: every backend against the definition, at the values one would least like to get."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pullback import Categorical
from pullback.inference.front.family import backend
from pullback.inference.simplex.family import SIMPLEX

BACKENDS = ["reference", "cpu", "cuda"]  # the last is PyTorch's own operations: it runs anywhere


def simplex_project(scores):
    return SIMPLEX.project(scores, False)


def simplex_project_vjp(mu, direction):
    return SIMPLEX.project_vjp(mu, direction, False)


@pytest.mark.parametrize("name", BACKENDS)
@given(
    rows=st.integers(0, 130), classes=st.integers(1, 40), scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e6]),
    ties=st.booleans(), double=st.booleans(), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_is_the_nearest_point_of_the_simplex(name, rows, classes, scale, ties, double, seed):
    dtype = torch.float64 if double else torch.float32
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(rows, classes, generator=generator, dtype=dtype)
    scores = scores.round() if ties else scores
    with backend(name):
        mu = simplex_project(scores).double()
    assert mu.shape == scores.shape
    assert (mu >= 0).all()
    tolerance = 1e-9 if double else 2e-5
    torch.testing.assert_close(mu.sum(-1), torch.ones(rows, dtype=torch.float64), atol=tolerance, rtol=0)
    residual = scores.double() - mu
    gap = residual.amax(-1) - (residual * mu).sum(-1)  # of the best vertex: zero at the nearest point alone
    assert (gap <= tolerance * max(scale, 1.0)).all()


@pytest.mark.parametrize("name", BACKENDS)
def test_forbidden_classes_and_values_that_are_none(name):
    inf, nan = torch.inf, torch.nan
    scores = torch.tensor([[0.0, -inf, 0.5], [-inf, -inf, 3.0], [nan, 0.0, 1.0], [0.0, inf, 1.0]])
    with backend(name):
        mu = simplex_project(scores)
    torch.testing.assert_close(mu[:2], torch.tensor([[0.25, 0.0, 0.75], [0.0, 0.0, 1.0]]))
    assert mu[2:].isnan().any(-1).all()  # a diverged model stays visible


@pytest.mark.parametrize("name", BACKENDS)
def test_derivatives(name):
    scores = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    with backend(name):
        assert torch.autograd.gradcheck(simplex_project, scores)
        assert torch.autograd.gradcheck(lambda v: simplex_project_vjp(simplex_project(scores).detach(), v), scores)
        assert torch.autograd.gradgradcheck(simplex_project, scores)


def test_threads_and_layouts_change_nothing():
    scores = torch.randn(50, 300, 12)
    expected = simplex_project(scores.reshape(-1, 12)).view(50, 300, 12)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(simplex_project(scores.reshape(-1, 12)).view(50, 300, 12), expected)
    finally:
        torch.set_num_threads(before)
    strided = scores.transpose(0, 2).contiguous().transpose(0, 2)
    assert torch.equal(Categorical().sparsemap(strided), expected)
    assert torch.equal(Categorical().sparsemap(scores[:, :1].expand(50, 4, 12)), expected[:, :1].expand(50, 4, 12))


def test_operators_are_sound():
    scores = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(SIMPLEX.project, (scores, False))
    torch.library.opcheck(SIMPLEX.project_vjp, (simplex_project(scores).detach(), scores, False))
