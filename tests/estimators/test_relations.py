"""How the published estimators relate: limits and special cases of one another, and unbiasedness by exact expectation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.test_published import Scripted, best
from estimators.worlds import CATEGORICAL, World, surrogate


def _gradient(estimator: pb.Estimator, world: World) -> Tensor:
    return surrogate(estimator, world, world.decoder())


def test_lpgd_is_blackbox_for_large_rho(world: World) -> None:
    torch.testing.assert_close(
        _gradient(pb.LPGD(2.0, 1e5, "lower"), world), _gradient(pb.Blackbox(2.0), world), rtol=1e-6, atol=1e-6
    )


def test_lpgd_tends_to_spigot_for_small_rho(world: World) -> None:
    eta, rho = 0.8, 1e-6
    tau = eta / rho
    found = tau * _gradient(pb.LPGD(tau, rho, "lower"), world)
    torch.testing.assert_close(found, _gradient(pb.SPIGOT(eta), world), rtol=1e-4, atol=1e-5)


def test_imle_without_noise_is_the_step_size_times_blackbox(world: World) -> None:
    torch.testing.assert_close(_gradient(pb.IMLE(3.0, temperature=0.0), world), 3.0 * _gradient(pb.Blackbox(3.0), world))


def test_spigot_eg_tends_to_a_mirror_step_at_temperature_zero(world: World) -> None:
    """On s / T with eta / T, as T tends to 0: argmax(s) - argmax(s - eta gamma), gamma at the argmax."""
    eta, temperature, decoder = 3.0, 1e-4, world.decoder()
    cold = World(world.name, world.structure, world.scores / temperature, world.allowed)
    found = surrogate(pb.SPIGOTEG(eta / temperature), cold, decoder)
    z = best(world, world.scores)
    torch.testing.assert_close(found, z - best(world, world.scores - eta * decoder.gamma(z)))
    mirror = pb.PulledBack(pb.losses.Perceptron(), pb.parts.FromArgmax(), pb.parts.MirrorAtZero(eta))
    torch.testing.assert_close(found, _gradient(mirror, world))


def test_a_small_proximal_step_is_a_projected_step_from_the_argmax(world: World) -> None:
    eta, rho = 0.8, 1e-6
    proximal = pb.PulledBack(pb.losses.Perceptron(), pb.parts.FromArgmax(), pb.parts.Proximal(eta / rho, rho))
    torch.testing.assert_close(_gradient(proximal, world), _gradient(pb.SPIGOT(eta), world), rtol=1e-4, atol=1e-5)


def test_identity_with_projection_is_the_projected_gamma() -> None:
    world, decoder = CATEGORICAL, CATEGORICAL.decoder()
    gamma = decoder.gamma(best(world, world.scores))
    centred = gamma - gamma.mean(-1, keepdim=True)
    found = surrogate(pb.Standardized(pb.STEIdentity(), scale=False), world, decoder)
    torch.testing.assert_close(found, centred)
    x = world.scores - world.scores.mean(-1, keepdim=True)
    norm = x.norm(dim=-1, keepdim=True)
    scaled = (gamma - (x / norm) * (gamma * x / norm).sum(-1, keepdim=True)) / norm
    found = surrogate(pb.Standardized(pb.STEIdentity()), world, decoder)
    torch.testing.assert_close(found, scaled - scaled.mean(-1, keepdim=True))


SMALL = {
    "categorical": (pb.Categorical(), (4,), (4,)),
    "projective": (pb.DependencyTree(), (3, 3), (3,)),
    "nonprojective": (pb.DependencyTree(projective=False, multiroot=False), (3, 3), (3,)),
    "subset": (pb.Subset(2), (4,), (4,)),
    "chain": (pb.LinearChain(), (3, 2, 2), (3, 2)),
    "segmentation": (pb.Segmentation(), (3, 2, 2), (3, 2, 2)),
    "binary": (pb.BinaryTree(), (3, 3), (3,)),
    "alignment": (pb.Alignment(), (2, 3), (2, 3)),
}


def _expectation(estimator: pb.Estimator, name: str, downstream: object) -> tuple[Tensor, Tensor]:
    """The expected gradient of an estimator that sees a sample, and the gradient of the expected loss, by enumeration."""
    structure, shape, sizes = SMALL[name]
    every = structure.enumerate(*sizes).double()
    scores = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    leaf = scores.clone().requires_grad_()
    p = (leaf * every).flatten(1).sum(1).softmax(0)
    (exact,) = torch.autograd.grad((p * downstream(every)).sum(), leaf)
    batch = scores.expand(len(every), *shape).clone().requires_grad_()
    losses = estimator.objective(Scripted(structure, every), batch, downstream)
    (p.detach() * losses).sum().backward()
    return batch.grad.sum(0), exact


def _quadratic(name: str) -> object:
    size = torch.tensor(SMALL[name][1]).prod()
    a = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    b = torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return lambda z: (z.flatten(1) @ a * z.flatten(1)).sum(1) + z.flatten(1) @ b


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("estimator", [pb.ReinMax(), pb.ScoreFunction()], ids=repr)
def test_unbiased_for_quadratic_losses(estimator: pb.Estimator, name: str) -> None:
    torch.testing.assert_close(*_expectation(estimator, name, _quadratic(name)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_unbiased_for_linear_losses(name: str) -> None:
    cost = torch.randn(SMALL[name][1], dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for estimator in (pb.SampledSTE(), pb.ReinMax(), pb.ScoreFunction()):
        torch.testing.assert_close(*_expectation(estimator, name, lambda z: (z * cost).flatten(1).sum(1)))


def test_sampled_ste_is_biased_for_quadratic_losses_and_reinmax_for_others() -> None:
    found, exact = _expectation(pb.SampledSTE(), "projective", _quadratic("projective"))
    assert (found - exact).norm() > 0.1 * exact.norm()
    found, exact = _expectation(pb.ReinMax(), "projective", lambda z: _quadratic("projective")(z) ** 3)
    assert (found - exact).norm() > 0.1 * exact.norm()


def test_gumbel_rao_has_the_mean_of_perturb_and_map() -> None:
    torch.manual_seed(0)
    scores = torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64).expand(200_000, 3)
    cost = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    means, variances = [], []
    for estimator in (pb.PerturbAndMAP(0.5), pb.GumbelRao(10, 0.5)):
        leaf = scores.clone().requires_grad_()
        estimator.objective(pb.Categorical(), leaf, lambda z: (z @ cost).square()).sum().backward()
        means.append(leaf.grad.mean(0))
        variances.append(leaf.grad.var(0).sum().item())
    torch.testing.assert_close(*means, rtol=0, atol=0.03)
    assert variances[1] < variances[0]


def test_perturbed_argmax_estimates_the_jacobian_of_the_smoothed_argmax() -> None:
    """On a categorical with Gumbel noise of scale 1 the mean of the argmax is softmax, and so is its Jacobian."""
    torch.manual_seed(0)
    scores = torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64)
    cost = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    leaf = scores.expand(20_000, 3).clone().requires_grad_()
    pb.PerturbedArgmax(1.0, samples=20).objective(pb.Categorical(), leaf, lambda z: z @ cost).sum().backward()
    p = scores.softmax(-1)
    torch.testing.assert_close(leaf.grad.mean(0), p * (cost - p @ cost), rtol=0, atol=0.02)


def test_perturbed_loss_has_the_mean_argmax_as_its_gradient(world: World) -> None:
    samples = 5
    noise = torch.randn(samples, *world.scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    loss, scores = pb.losses.PerturbedLoss(0.5, samples, lambda scores: noise), world.leaf()
    target = world.structure.marginals(world.scores)
    loss(world.structure, scores, target).sum().backward()
    mean = torch.stack([best(world, world.scores + 0.5 * g) for g in noise]).mean(0)
    torch.testing.assert_close(scores.grad, mean - target)
    frame = pb.PulledBack(loss, pb.parts.FromZero(), pb.parts.Unconstrained(0.1))
    gamma = torch.where(world.allowed, world.decoder().gamma(torch.zeros_like(mean)), 0.0)
    torch.testing.assert_close(_gradient(frame, world), mean + 0.1 * gamma)


def test_a_start_from_a_sample_shows_the_decoder_the_sample(world: World) -> None:
    torch.manual_seed(0)
    z = world.structure.sample(world.scores)
    scripted = World(world.name, Scripted(world.structure, z), world.scores, world.allowed)
    decoder = world.decoder()
    frame = pb.PulledBack(pb.losses.CrossEntropy(), pb.parts.FromSample(), pb.parts.Unconstrained(0.3), steps=2)
    found = surrogate(frame, scripted, decoder)
    torch.testing.assert_close(decoder.seen[0], z)
    mu = z
    for _ in range(2):
        mu = torch.where(world.allowed, mu - 0.3 * decoder.gamma(mu), 0.0)
    torch.testing.assert_close(found, world.structure.marginals(world.scores) - mu)
