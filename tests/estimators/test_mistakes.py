"""What reference implementations get wrong, and what goes wrong in training: each a test that the mistake would fail."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from estimators.worlds import CATEGORICAL, World, surrogate


def test_blackbox_does_not_clamp_scores() -> None:
    """blackbox-backprop clamps perturbed weights at 0, so that Dijkstra works: another estimator."""
    scores = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    cost = torch.tensor([4.0, 0.0, 0.0])
    pb.Blackbox(1.0).objective(pb.Categorical(), scores, lambda z: z @ cost).sum().backward()
    assert scores.grad.tolist() == [[1.0, -1.0, 0.0]]


def test_the_decoder_sees_each_sample_as_a_batch() -> None:
    """torch-imle returns `[B * samples, ...]`, so that users have to repeat their targets."""
    shapes = []
    targets = torch.eye(3)[:2]

    def downstream(z: Tensor) -> Tensor:
        shapes.append(tuple(z.shape))
        return (z - targets).square().sum(-1)

    pb.IMLE(1.0, samples=3).objective(pb.Categorical(), torch.zeros(2, 3, requires_grad=True), downstream)
    assert shapes == [(2, 3)] * 3


@pytest.mark.parametrize("samples", [1, 3])
def test_an_adaptive_step_does_not_depend_on_the_rest_of_the_batch(samples: int) -> None:
    """torch-adaptive-imle takes norms over the whole batch."""
    generator = torch.Generator().manual_seed(0)
    scores, cost = torch.randn(2, 6, 4, generator=generator)
    noise = torch.randn(samples, 6, 4, generator=generator)

    def gradient(examples: slice, scale: float) -> Tensor:
        leaf = scores[examples].clone().requires_grad_()
        factor = torch.ones(6)
        factor[1:] = scale
        given = noise[:, examples] if samples > 1 else noise[0, examples]
        estimator = pb.AdaptiveIMLE(noise=lambda scores: given, samples=samples)
        loss = estimator.objective(pb.Categorical(), leaf, lambda z: (z * cost[examples]).sum(-1) * factor[examples])
        loss.sum().backward()
        return leaf.grad[0]

    alone = gradient(slice(0, 1), 1.0)
    torch.testing.assert_close(gradient(slice(0, 6), 1.0), alone)
    torch.testing.assert_close(gradient(slice(0, 6), 100.0), alone)


def test_the_adaptive_step_settles_where_one_part_changes_per_example() -> None:
    """PyEPO's compares a fraction of non-zeros with 1, so that alpha only grows."""
    torch.manual_seed(0)
    estimator = pb.AdaptiveIMLE(rate=0.05)
    scores, cost = torch.randn(2, 64, 5)
    seen = []
    for _ in range(300):
        leaf = scores.clone().requires_grad_()
        estimator.objective(pb.Categorical(), leaf, lambda z: (z * cost).sum(-1)).sum().backward()
        seen.append((leaf.grad != 0).sum(-1).float().mean().item())
    assert sum(seen[-100:]) / 100 == pytest.approx(1.0, abs=0.15)


def test_adaptive_steps_of_groups_are_those_of_each_alone() -> None:
    torch.manual_seed(0)
    scores, cost, noise = torch.randn(3, 12, 5, dtype=torch.float64)
    cost[6:] *= 0.01
    together = pb.AdaptiveIMLE(rate=0.3, noise=lambda s: noise, groups=2)
    for _ in range(5):
        whole = _adaptive_gradient(together, scores, cost)
    for group in (slice(0, 6), slice(6, 12)):
        alone = pb.AdaptiveIMLE(rate=0.3, noise=lambda s, group=group: noise[group])
        for _ in range(5):
            own = _adaptive_gradient(alone, scores[group], cost[group])
        torch.testing.assert_close(whole[group], own)
    with pytest.raises(ValueError, match="11 examples do not make 2 groups of equal size"):
        _adaptive_gradient(pb.AdaptiveIMLE(groups=2), scores[:11], cost[:11])


def _adaptive_gradient(estimator: pb.Estimator, scores: Tensor, cost: Tensor) -> Tensor:
    leaf = scores.clone().requires_grad_()
    estimator.objective(pb.Categorical(), leaf, lambda z: (z * cost).sum(-1).square()).sum().backward()
    return leaf.grad


def test_gumbel_noise_needs_its_own_score_function() -> None:
    """With nu'(g) = g for Gumbel noise the Jacobian of the perturbed argmax would be wrong: its mean is not even zero."""

    class Wrong(pb.parts.Gumbel):
        def score(self, noise: Tensor) -> Tensor:
            return noise

    cost = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    p = torch.zeros(3, dtype=torch.float64).softmax(-1)
    exact = p * (cost - p @ cost)
    errors = []
    for noise in (pb.parts.Gumbel(), Wrong()):
        torch.manual_seed(0)
        leaf = torch.zeros(20_000, 3, dtype=torch.float64, requires_grad=True)
        estimator = pb.PerturbedArgmax(1.0, 10, noise)
        estimator.objective(pb.Categorical(), leaf, lambda z: z @ cost).sum().backward()
        errors.append((leaf.grad.mean(0) - exact).norm().item())
    assert errors[0] < 0.02 < 0.1 < errors[1]


@pytest.mark.parametrize("sigma", [0.05, 0.5])
def test_the_baseline_of_the_perturbed_argmax_bounds_its_variance(sigma: float) -> None:
    """Without one the variance grows as 1 / sigma^2, even where the argmax never changes: here it must be zero."""
    scores = torch.tensor([50.0, 0.0, 0.0]).expand(100, 3).clone().requires_grad_()
    estimator = pb.PerturbedArgmax(sigma, 5, pb.parts.Normal())
    estimator.objective(pb.Categorical(), scores, lambda z: 100 * z[:, 0]).sum().backward()
    assert (scores.grad == 0).all()


ARCS = torch.tensor([[2.0, 1.0, -1.0], [0.0, -2.0, 3.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("structure", "scores"),
    [
        (pb.Subset(2), torch.tensor([2.0, 0.0, -1.0, -2.0])),
        (pb.DependencyTree(projective=False, multiroot=False), ARCS),
    ],
    ids=["subset", "tree"],
)
def test_samples_have_the_distribution_of_the_marginals(structure: pb.Structure, scores: Tensor) -> None:
    """SIMPLE's PyTorch version samples by Gumbel top-k, which is not the distribution whose marginals it uses."""
    torch.manual_seed(0)
    batch = scores.expand(20_000, *scores.shape)
    seen = []

    def downstream(z: Tensor) -> Tensor:
        seen.append(z.detach())
        return z.flatten(1)[:, 0]

    pb.SampledSTE().objective(structure, batch.clone().requires_grad_(), downstream)
    mu = structure.marginals(scores)
    torch.testing.assert_close(seen[0].mean(0), mu, rtol=0, atol=0.015)
    perturbed = structure.argmax(batch + pb.parts.Gumbel()(batch)).mean(0)
    assert (perturbed - mu).abs().max() > 0.02


@pytest.mark.parametrize("estimator", [pb.PerturbedMarginals(0.1), pb.PerturbAndMAP(0.1), pb.GumbelRao(5, 0.1)], ids=repr)
def test_wide_scores_give_finite_gradients(estimator: pb.Estimator) -> None:
    """`torch.nn.functional.gumbel_softmax` has given NaN for wide logits."""
    torch.manual_seed(0)
    for dtype in (torch.float16, torch.float32):
        scores = torch.tensor([[3e4, -3e4, 0.0], [0.0, 0.0, -torch.inf]], dtype=dtype).repeat(500, 1).requires_grad_()
        losses = estimator.objective(pb.Categorical(), scores, lambda z: z.float().square().sum(-1) + z[:, 0])
        losses.sum().backward()
        assert losses.isfinite().all()
        assert scores.grad.isfinite().all()


@pytest.mark.parametrize("write", [lambda z: z.mul_(2), lambda z: z[..., 0].zero_()], ids=["mul", "fill"])
@pytest.mark.parametrize("baseline", [None, pb.parts.LeaveOneOut(3)], ids=repr)
def test_a_decoder_that_writes_into_z_does_not_change_the_score_function(write: object, baseline: object) -> None:
    gradients = []
    for change in (write, lambda z: None):
        torch.manual_seed(0)
        scores = CATEGORICAL.leaf()

        def downstream(z: Tensor, change: object = change) -> Tensor:
            losses = (z * torch.arange(4.0, dtype=torch.float64)).sum(-1)
            change(z)
            return losses

        pb.ScoreFunction(baseline).objective(pb.Categorical(), scores, downstream).sum().backward()
        gradients.append(scores.grad)
    assert torch.equal(*gradients)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, 1e200])
def test_a_moving_average_leaves_out_losses_that_are_not_finite(bad: float) -> None:
    poisoned, clean = pb.parts.MovingAverage(), pb.parts.MovingAverage()
    losses = torch.linspace(0, 3, 5, dtype=torch.float64)
    poisoned.advantages(torch.cat([losses, torch.tensor([bad], dtype=torch.float64)])[None])
    clean.advantages(losses[None])
    if abs(bad) != 1e200:
        torch.testing.assert_close(poisoned.state_dict(), clean.state_dict())
    assert all(value.isfinite().all() for value in poisoned.state_dict().values())


@pytest.mark.parametrize("losses", [torch.zeros(1, 0), torch.full((1, 4), torch.nan)], ids=["empty", "NaN"])
def test_a_batch_without_a_finite_loss_leaves_a_moving_average_as_it_is(losses: Tensor) -> None:
    baseline = pb.parts.MovingAverage(groups=2)
    baseline.advantages(torch.arange(8.0)[None])
    before = baseline.state_dict()
    baseline.advantages(losses)
    torch.testing.assert_close(baseline.state_dict(), before)


FAILING = [
    pb.STEIdentity(), pb.SPIGOT(), pb.SPIGOT(steps=2), pb.SPIGOTCE(), pb.SPIGOTEG(), pb.Blackbox(1.0), pb.IMLE(1.0),
    pb.IMLE(1.0, samples=2), pb.AdaptiveIMLE(), pb.LPGD(1.0, 1.0), pb.ScoreFunction(), pb.Standardized(pb.SPIGOT()),
    pb.Marginals(), pb.STEMarginals(), pb.SampledSTE(), pb.ReinMax(), pb.PerturbedArgmax(),
]  # fmt: skip


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize("estimator", FAILING, ids=repr)
def test_an_example_whose_loss_is_nan_has_a_nan_gradient_and_the_others_are_right(
    estimator: pb.Estimator, validate: bool
) -> None:
    """So that a `GradScaler` skips the step, and nobody is told to check the encoder."""
    lengths = torch.tensor([3, 2, 3])
    tree = pb.DependencyTree(lengths, validate=validate)
    scores = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(0))
    cost = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(1))
    gradients = []
    for factor in (1.0, torch.nan):
        torch.manual_seed(0)
        leaf, weight = scores.clone().requires_grad_(), torch.tensor([1.0, factor, 1.0])
        decoder = functools.partial(_costs, cost=cost, weight=weight)
        losses = copy.deepcopy(estimator).objective(tree, leaf, decoder)
        losses.sum().backward()
        gradients.append(leaf.grad)
    right, found = gradients
    torch.testing.assert_close(found[[0, 2]], right[[0, 2]])
    assert found[1].isnan().any()
    if not isinstance(estimator, pb.Marginals | pb.STEMarginals | pb.SampledSTE):
        assert (found[1, 2:] == 0).all()
        assert (found[1, :, 2:] == 0).all()


def _costs(z: Tensor, cost: Tensor, weight: Tensor) -> Tensor:
    return (z * cost).sum((1, 2)).square() * weight


def test_a_nan_that_does_not_reach_gamma_counts_too() -> None:
    constant = torch.tensor([0.0, torch.nan])
    for estimator in (pb.SPIGOT(), pb.SPIGOTCE(), pb.Blackbox(5.0), pb.ScoreFunction()):
        scores = torch.tensor([[1.0, 0.5], [1.0, 0.5]], requires_grad=True)
        losses = estimator.objective(pb.Categorical(), scores, lambda z: z[:, 0] + constant)
        losses.sum().backward()
        assert scores.grad[0].isfinite().all()
        assert scores.grad[1].isnan().all()


@pytest.mark.parametrize("estimator", [pb.SPIGOT(), pb.SPIGOTCE(), pb.Blackbox(1.0)], ids=repr)
def test_a_grad_scaler_skips_the_step(estimator: pb.Estimator) -> None:
    encoder = nn.Linear(2, 3)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    before = encoder.weight.detach().clone()
    losses = estimator.objective(pb.Categorical(), encoder(torch.ones(4, 2)), lambda z: z[:, 0] / 0.0)
    scaler.scale(losses.mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(encoder.weight, before)
    assert scaler.get_scale() == 2.0


def test_gamma_on_padding_may_be_anything() -> None:
    world = World("tree", pb.DependencyTree(torch.tensor([2])), torch.zeros(1, 3, 3), torch.ones(1, 3, 3, dtype=torch.bool))
    weight = torch.ones(1, 3, 3)
    weight[:, 2], weight[:, :, 2] = torch.nan, torch.inf
    for estimator in (pb.SPIGOT(), pb.Blackbox(1.0), pb.LPGD(1.0, 1.0)):
        scores = world.leaf()
        z = estimator(world.structure, scores)
        z.backward(weight)
        assert scores.grad.isfinite().all()
    assert surrogate(pb.SPIGOT(), world, lambda z: z[:, 0, 0]).isfinite().all()
