"""Subsets where sums are hard: thousands of ties at large scores, and projections taken apart into subsets."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

import pullback as pb
from pullback.inference.at_most.reference import largest


@pytest.mark.parametrize(("n", "k"), [(2000, 1), (1500, 1499), (300, 0), (300, 300), (400, 200)])
@pytest.mark.parametrize("size", [0.0, 1e18, -1e30])
def test_ties_of_any_size_are_uniform(n, k, size):
    """With equal scores all binomial(n, k) subsets are as likely, which no size of the scores changes."""
    scores, subset = torch.full((n,), size, dtype=torch.float64), pb.Subset(k)
    nats = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    assert float(subset.entropy(scores)) == pytest.approx(nats, rel=1e-9, abs=1e-9)
    assert float(subset.log_partition(scores)) == pytest.approx(k * size + nats, rel=1e-9, abs=1e-9)
    torch.testing.assert_close(subset.marginals(scores), torch.full_like(scores, k / n))
    assert float(subset.sample(scores).sum()) == k


def test_a_subset_made_inside_of_a_compiled_function():
    scores = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))

    @torch.compile(fullgraph=True, backend="eager")
    def marginals(s, k):
        return pb.Subset(k).marginals(s)

    for k in (torch.tensor([1, 4]), 3):
        torch.testing.assert_close(marginals(scores, k), pb.Subset(k).marginals(scores))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_a_projection_is_an_average_of_subsets(scale, dtype):
    """Each with k different items, also where the rounded mu does not sum to k."""
    generator = torch.Generator().manual_seed(0)
    for n in range(1, 10):
        for k in range(n + 1):
            scores = scale * torch.randn(8, n, generator=generator, dtype=torch.float64).to(dtype)
            solution = pb.Subset(k).sparsemap_solution(scores)
            z, weights = solution.structures, solution.weights
            used = z[weights > 0]
            assert ((used == 0) | (used == 1)).all()
            assert (used.sum(-1) == k).all()
            torch.testing.assert_close(weights.sum(-1), torch.ones(8, dtype=torch.float64))
            mean = (weights[..., None] * z.double()).sum(-2)
            torch.testing.assert_close(mean, solution.mu.double(), atol=1e-6, rtol=0.0)


def test_an_infeasible_projection_taken_apart_is_nan():
    solution = pb.Subset(torch.tensor([1, 5]), validate=False).sparsemap_solution(torch.randn(2, 3))
    assert solution.weights.isnan().tolist() == [[False] * 3, [True] * 3]
    assert solution.structures[0].isfinite().all()


@pytest.mark.parametrize("mask", [-6.0, -1e30])
def test_a_projection_onto_one_subset_is_that_subset(mask):
    """Items that are more than 1 below the others get exactly nothing, and no gradient flows."""
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        k = 1 + seed % 11
        z = torch.zeros(12, dtype=torch.float64).index_fill(0, torch.randperm(12, generator=generator)[:k], 1.0)
        scores = torch.where(z > 0, torch.randn(12, generator=generator, dtype=torch.float64).clamp(-2, 2), mask)
        found = pb.Subset(k).sparsemap_solution(scores.requires_grad_())
        (found.mu * torch.arange(12)).sum().backward()
        assert torch.equal(found.mu, z)
        assert found.gap == 0
        assert not scores.grad.any()


def test_rows_of_the_recursion_of_at_most_k_on_a_gpu():
    """As many as k, where that is a number, and not a tensor on the GPU, which nobody may look at."""
    on_a_gpu = SimpleNamespace(is_cuda=True, shape=torch.Size([2, 9]))
    for k, rows in ((3, 3), (torch.tensor([2, 5]), 5), (20, 9)):
        structure = pb.Subset(k, at_most=True)
        assert largest(on_a_gpu, structure.k, structure.most) == rows
    assert largest(on_a_gpu, None, 2**31 - 1) == 9
