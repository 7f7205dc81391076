"""A user's own structure needs only `argmax`."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb


class Subset(pb.Structure):
    """Exactly two of K parts."""

    def argmax(self, scores):
        best = scores.detach().topk(2, dim=-1).indices
        return torch.zeros_like(scores).scatter(-1, best, 1.0)


def subset_projection(scores):
    """The projection onto {0 <= mu <= 1, sum mu = 2}: clip(s - tau, 0, 1), with tau by bisection."""
    low, high = scores.amin(-1, keepdim=True) - 2, scores.amax(-1, keepdim=True) + 2
    for _ in range(200):
        middle = (low + high) / 2
        too_much = (scores - middle).clamp(0, 1).sum(-1, keepdim=True) > 2
        low, high = torch.where(too_much, middle, low), torch.where(too_much, high, middle)
    return (scores - low).clamp(0, 1)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_sparsemap_comes_with_the_argmax(scale):
    scores = scale * torch.randn(3, 4, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert_close(Subset().sparsemap(scores), subset_projection(scores), atol=1e-9, rtol=0)


def test_sparsemap_of_a_users_structure_is_differentiable():
    scores = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.autograd.gradcheck(Subset().sparsemap, scores)


def test_sparsemap_of_a_users_structure_returns_its_certificate():
    scores = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    solution = Subset().sparsemap_solution(scores)
    assert (solution.gap <= 1e-10).all()
    assert solution.converged.all()
    mean = (solution.weights[..., None] * solution.structures).sum(-2)
    assert_close(mean, solution.mu)
    assert (solution.structures[solution.weights > 0].sum(-1) == 2).all()


def test_score_comes_with_the_argmax():
    scores = torch.tensor([3.0, 2.0, -torch.inf])
    assert Subset().score(scores, Subset().argmax(scores)) == 5


@pytest.mark.parametrize("operation", ["marginals", "log_partition", "entropy", "sample"])
def test_what_is_missing_is_said(operation):
    with pytest.raises(NotImplementedError, match=rf"Subset does not define `{operation}`.*Subset\.{operation}"):
        getattr(Subset(), operation)(torch.zeros(3))


def test_log_prob_says_that_log_partition_is_missing():
    with pytest.raises(NotImplementedError, match="log_partition"):
        Subset().log_prob(torch.zeros(3), torch.tensor([1.0, 1.0, 0.0]))


def test_a_structure_without_argmax_cannot_be_made():
    with pytest.raises(TypeError, match="argmax"):
        type("Nothing", (pb.Structure,), {})()
