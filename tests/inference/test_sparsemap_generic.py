"""SparseMAP of a user's own structure, of which the solver knows the argmax alone."""

import warnings

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import CATEGORICAL
from pullback.inference.sparsemap.generic import project
from pullback.inference.sparsemap.solution import NotConverged


def test_the_active_set_of_a_users_structure_spans_the_face():
    """Half of 30 parts: where 0 < mu < 1 the Jacobian is that of a shift to the right sum."""

    class Half(pb.Structure):
        def argmax(self, scores):
            return torch.zeros_like(scores).scatter(-1, scores.topk(15).indices, 1.0)

    scores = (0.2 * CATEGORICAL.scores(4, n=30, seed=23)).requires_grad_()
    mu = Half().sparsemap(scores)
    v = CATEGORICAL.scores(4, n=30, seed=24)
    (gradient,) = torch.autograd.grad(mu, scores, v)
    inside = (mu > 1e-9) & (mu < 1 - 1e-9)
    assert (inside.sum(-1) > 20).all()
    mean = torch.where(inside, v, 0.0).sum(-1, keepdim=True) / inside.sum(-1, keepdim=True)
    assert_close(gradient, torch.where(inside, v - mean, 0.0))


def test_an_iteration_limit_of_the_generic_solver_is_reported():
    scores = CATEGORICAL.scores(3, n=30, scale=0.01)
    with pytest.warns(NotConverged, match="stopped at 4 iterations before 3 of 3"):
        solution = project(CATEGORICAL.structure(), scores, max_iterations=4)
    assert not solution.converged.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(project(CATEGORICAL.structure(), scores).mu, CATEGORICAL.structure().sparsemap(scores))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_users_structure_in_every_precision(dtype):
    scores = CATEGORICAL.scores(2, 3, n=5, seed=17).to(dtype).requires_grad_()
    solution = project(CATEGORICAL.structure(), scores)
    assert solution.mu.dtype == solution.structures.dtype == dtype
    assert solution.gap.shape == solution.oracle_calls.shape == solution.converged.shape == (2, 3)
    assert_close(solution.mu, CATEGORICAL.structure().sparsemap(scores), atol=1e-3, rtol=1e-2)
    solution.mu[..., 0].sum().backward()
    assert scores.grad.dtype == dtype


def test_a_users_structure_without_examples():
    scores = torch.zeros(0, 4, requires_grad=True)
    solution = project(CATEGORICAL.structure(), scores)
    assert solution.mu.shape == (0, 4)
    solution.mu.sum().backward()


def test_a_users_structure_with_nothing_feasible_is_an_error():
    class Both(pb.Structure):
        def argmax(self, scores):
            return torch.ones_like(scores)

    with pytest.raises(ValueError, match=r"example 1 of the batch has no feasible structure"):
        Both().sparsemap(torch.tensor([[0.0, 1.0], [0.0, -torch.inf]]))
    with pytest.raises(ValueError, match=r"NaN or \+inf"):
        Both().sparsemap(torch.tensor([[0.0, torch.nan]]))
