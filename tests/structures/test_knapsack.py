"""Sets of items within a budget: other costs for each example, costs that are none, projections that fill the budget or not."""

from __future__ import annotations

import pytest
import torch

import pullback as pb

COSTS = torch.tensor([[3, 1, 2, 2, 5, 1], [4, 4, 8, 12, 4, 20], [7, 7, 7, 7, 7, 7]])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("budget", [0, 6, [3, 9, 100]])
def test_against_enumeration(budget, shared):
    costs = COSTS[1:2] if shared else COSTS
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 6, generator=generator, dtype=torch.float64).requires_grad_()
    knapsack = pb.Knapsack(costs, budget)
    mu, solution, best = knapsack.marginals(scores), knapsack.sparsemap_solution(scores), knapsack.topk(scores, 3)
    (slope,) = torch.autograd.grad((mu * scores.detach()).sum(), scores)
    assert solution.converged.all()
    for example in range(3):
        one = pb.Knapsack(costs.expand(3, 6)[example], budget if isinstance(budget, int) else budget[example])
        z = one.enumerate(6).double()
        totals = z @ scores[example].detach()
        p = totals.softmax(0)
        torch.testing.assert_close(mu[example], p @ z)
        torch.testing.assert_close(knapsack.log_partition(scores)[example], totals.logsumexp(0))
        torch.testing.assert_close(knapsack.entropy(scores)[example], -(p * p.log()).sum())
        torch.testing.assert_close(slope[example], (p * (totals - p @ totals)) @ z)
        found = min(3, len(z))
        torch.testing.assert_close(best.scores[:found, example], totals.topk(found).values)
        assert torch.equal(knapsack.argmax(scores)[example], z[totals.argmax()])
        assert torch.equal(knapsack.contains(z[:, None].expand(-1, 3, -1))[:, example], torch.ones(len(z), dtype=torch.bool))
        apart = scores[example] - solution.mu[example]
        assert ((z - solution.mu[example]) @ apart).max() < 1e-9  # the optimality of a projection


def test_samples_have_the_marginals():
    scores, knapsack = torch.tensor([1.0, 0.0, -1.0, 0.5]), pb.Knapsack([3, 1, 2, 2], 4)
    z = knapsack.sample(scores, torch.Generator().manual_seed(0), samples=20000)
    assert knapsack.contains(z).all()
    torch.testing.assert_close(z.mean(0), knapsack.marginals(scores), atol=0.015, rtol=0)


def test_padding_of_costs_may_be_anything():
    costs, scores = torch.tensor([[2, 1, -5], [1, 0, 0]]), torch.tensor([[1.0, 2.0, torch.nan], [1.0, torch.nan, torch.nan]])
    knapsack = pb.Knapsack(costs, 2, lengths=[2, 1])
    assert knapsack.argmax(scores).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert [z.tolist() for z in knapsack.topk(scores, 2).structures] == [[[0, 1, 0], [1, 0, 0]], [[1, 0, 0], [0, 0, 0]]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pb.Knapsack([1, 0], 3), ValueError, r"costs\[1\] is 0; costs must be positive integers"),
        (lambda: pb.Knapsack([[1, 2], [-1, 2]], 3), ValueError, r"costs\[1, 0\] is -1"),
        (lambda: pb.Knapsack([1.5, 2], 3), TypeError, "costs have dtype torch.float32; they must be integers"),
        (lambda: pb.Knapsack(2, 3), ValueError, r"costs has shape \[\]"),
        (lambda: pb.Knapsack([1, 2], 2.5), TypeError, "budget have dtype torch.float32"),
        (
            lambda: pb.Knapsack([1, 2], [3, -1]).argmax(torch.zeros(2, 2)),
            ValueError,
            r"budget\[1\] is -1; it must be at least 0",
        ),
        (
            lambda: pb.Knapsack([1, 2], 3).argmax(torch.zeros(2, 3)),
            ValueError,
            "scores have 3 items and costs 2; a Knapsack needs",
        ),
        (lambda: pb.Knapsack([10**9, 10**9 + 1], 10**9).argmax(torch.zeros(2)), ValueError, "round the costs"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_costs_that_only_a_call_can_check():
    knapsack = pb.Knapsack(torch.tensor([[1, 2], [1, 2]]), 3)
    knapsack.costs = torch.tensor([[1, 2], [1, 0]])
    with pytest.raises(ValueError, match=r"example 1 of the batch .* costs must be positive integers"):
        knapsack.marginals(torch.zeros(2, 2))
    knapsack.validate = False
    assert knapsack.marginals(torch.zeros(2, 2)).isnan().tolist() == [[False, False], [True, True]]


def test_items_that_make_no_difference_are_not_taken():
    scores = torch.tensor([0.0, 2.0, 1.0, 1.0, 0.0, -1.0])
    assert pb.Subset(3, at_most=True).argmax(scores).tolist() == [0, 1, 1, 1, 0, 0]
    assert pb.Subset(2, at_most=True).argmax(scores).tolist() == [0, 1, 1, 0, 0, 0]
    assert pb.Knapsack([1] * 6, 2).argmax(scores).tolist() == [0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_projection_on_at_most_k_items(k):
    """Optimal over all subsets, differentiable on both sides, and an average of subsets of at most k items."""
    scores = torch.randn(40, 6, generator=torch.Generator().manual_seed(k), dtype=torch.float64).requires_grad_()
    subset = pb.Subset(k, at_most=True)
    z, solution = subset.enumerate(6).double(), subset.sparsemap_solution(scores)
    mu = solution.mu.detach()
    assert ((z[:, None] - mu) * (scores.detach() - mu)).sum(-1).max() < 1e-12
    assert (mu.sum(1) < k - 0.01).any()
    assert k > 2 or (mu.sum(1) > k - 1e-9).any()
    assert torch.autograd.gradcheck(subset.sparsemap, (scores[:12],))
    used = solution.structures[solution.weights > 0]
    assert subset.contains(used).all()
    torch.testing.assert_close((solution.weights[..., None] * solution.structures).sum(1), mu)


def test_diagnose_takes_costs_of_each_example():
    knapsack, scores = pb.Knapsack(COSTS[:2, :4], [5, 9]), torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    found = pb.diagnose(pb.Marginals(), knapsack, scores, lambda z: (z**2).sum(-1), draws=20, reference="relaxed")
    assert float(found.bias) < 1e-5


def test_the_k_best_of_no_items():
    for knapsack in (pb.Knapsack([], 3), pb.Knapsack([], [3, 0])):
        found = knapsack.topk(torch.zeros(2, 0), 2)
        assert found.scores.tolist() == [[0.0, 0.0], [-torch.inf, -torch.inf]]
        assert found.structures.shape == (2, 2, 0)
