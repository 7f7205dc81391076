"""The estimators published since the paper, each against its formula, with weights on the losses, in every world."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import CATEGORICAL, World, surrogate


def fixed(world: World, samples: int = 1, seed: int = 1) -> Tensor:
    shape = world.scores.shape if samples == 1 else (samples, *world.scores.shape)
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def weights(world: World) -> Tensor:
    return torch.linspace(-1.0, 2.0, world.size, dtype=torch.float64)


def check(estimator: pb.Estimator, world: World, expected: Tensor) -> None:
    w = weights(world)
    found = surrogate(estimator, world, world.decoder(), w)
    expected = torch.where(world.allowed, expected, 0.0)
    torch.testing.assert_close(found, w.reshape(-1, *[1] * (expected.dim() - 1)) * expected)


def best(world: World, scores: Tensor) -> Tensor:
    return world.structure.argmax(torch.where(world.allowed, scores, -torch.inf))


def jacobian(world: World, scores: Tensor, gamma: Tensor) -> Tensor:
    leaf = scores.clone().requires_grad_()
    return torch.autograd.grad(world.structure.marginals(leaf), leaf, gamma)[0]


@pytest.mark.parametrize("eta", [0.5, 20.0])
def test_blackbox(world: World, eta: float) -> None:
    z = best(world, world.scores)
    expected = (z - best(world, world.scores - eta * world.decoder().gamma(z))) / eta
    check(pb.Blackbox(eta), world, expected)


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_imle(world: World, samples: int, temperature: float) -> None:
    noise, decoder, eta = fixed(world, samples), world.decoder(), 5.0
    expected = torch.zeros_like(world.scores)
    for g in noise.reshape(samples, *world.scores.shape):
        perturbed = world.scores + temperature * g
        z = best(world, perturbed)
        expected = expected + (z - best(world, perturbed - eta * decoder.gamma(z))) / samples
    check(pb.IMLE(eta, temperature, lambda scores: noise, samples), world, expected)


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("symmetric", [False, True])
def test_adaptive_imle(world: World, samples: int, symmetric: bool) -> None:
    noise, decoder, alpha = fixed(world, samples), world.decoder(), 3.0
    expected, nonzeros = torch.zeros_like(world.scores), []
    for g in noise.reshape(samples, *world.scores.shape):
        perturbed = world.scores + g
        z = best(world, perturbed)
        gamma = torch.where(world.allowed, decoder.gamma(z), 0.0)
        size = torch.where(world.allowed, world.scores, 0.0).flatten(1).norm(dim=1)
        eta = (alpha * size / gamma.flatten(1).norm(dim=1)).reshape(-1, *[1] * (z.dim() - 1))
        above = best(world, perturbed + eta * gamma) if symmetric else z
        difference = above - best(world, perturbed - eta * gamma)
        nonzeros.append((difference != 0).double().flatten(1).sum(1).mean())
        expected = expected + difference / (2 * eta if symmetric else eta) / samples
    estimator = pb.AdaptiveIMLE(alpha, noise=lambda scores: noise, samples=samples, symmetric=symmetric)
    check(estimator, world, expected)
    average = 0.9 + 0.1 * torch.stack(nonzeros).mean()
    assert estimator.state_dict()["alpha"].item() == pytest.approx(alpha + 1e-3 * torch.sign(1 - average).item())


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("kind", [pb.parts.Normal, pb.parts.Gumbel])
def test_perturbed_argmax(world: World, samples: int, kind: type[pb.parts.Normal]) -> None:
    noise, decoder, sigma = fixed(world, samples), world.decoder(), 0.5

    class Given(kind):
        def __call__(self, scores: Tensor) -> Tensor:
            return noise

    g = noise.reshape(samples, *world.scores.shape)
    z = torch.stack([best(world, world.scores + sigma * each) for each in g])
    gamma = torch.where(world.allowed, decoder.gamma(z.mean(0)), 0.0)
    dims = tuple(range(-world.structure.event_dims, 0))
    expected = torch.zeros_like(world.scores)
    for i in range(samples):
        others = [z[j] for j in range(samples) if j != i]
        baseline = torch.stack(others).mean(0) if others else best(world, world.scores)
        derivative = g[i] if kind is pb.parts.Normal else 1 - torch.exp(-g[i])
        expected = expected + derivative * ((z[i] - baseline) * gamma).sum(dims, keepdim=True) / (samples * sigma)
    check(pb.PerturbedArgmax(sigma, samples, Given()), world, expected)


@pytest.mark.parametrize("rho", [0.1, 3.0])
@pytest.mark.parametrize("side", ["lower", "upper", "average"])
def test_lpgd(world: World, rho: float, side: str) -> None:
    tau, z = 2.0, best(world, world.scores)
    gamma = world.decoder().gamma(z)

    def x(tau: float) -> Tensor:
        target = z + rho * (torch.where(world.allowed, world.scores, 0.0) - tau * gamma)
        return world.structure.sparsemap(torch.where(world.allowed, target, -torch.inf))

    sides = {"lower": (z - x(tau)) / tau, "upper": (x(-tau) - z) / tau}
    sides["average"] = (sides["lower"] + sides["upper"]) / 2
    check(pb.LPGD(tau, rho, side), world, sides[side])


def test_perturbed_sparsemap(world: World) -> None:
    noise, decoder, scores = fixed(world), world.decoder(), world.leaf()
    mu = world.structure.sparsemap((scores + noise) / 0.5)
    (expected,) = torch.autograd.grad(mu, scores, decoder.gamma(mu.detach()))
    check(pb.PerturbedSparseMAP(0.5, lambda scores: noise), world, expected)


class Scripted(pb.Structure):
    """A structure whose sample is given beforehand."""

    def __init__(self, inside: pb.Structure, z: Tensor) -> None:
        self.inside, self.z, self.event_dims = inside, z, inside.event_dims

    def argmax(self, scores: Tensor) -> Tensor:
        return self.inside.argmax(scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self.inside.marginals(scores)

    def allowed(self, scores: Tensor) -> Tensor:
        return self.inside.allowed(scores)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.z.expand(scores.shape)


def _drawn(world: World) -> tuple[World, Tensor]:
    torch.manual_seed(0)
    z = world.structure.sample(world.scores)
    return World(world.name, Scripted(world.structure, z), world.scores, world.allowed), z


def test_sampled_ste(world: World) -> None:
    scripted, z = _drawn(world)
    check(pb.SampledSTE(), scripted, jacobian(world, world.scores, world.decoder().gamma(z)))


def test_reinmax(world: World) -> None:
    scripted, z = _drawn(world)
    gamma, d = world.decoder().gamma(z), z - world.structure.marginals(world.scores)
    inner = (d * gamma).sum(tuple(range(-world.structure.event_dims, 0)), keepdim=True)
    check(pb.ReinMax(), scripted, (jacobian(world, world.scores, gamma) + d * inner) / 2)


def test_reinmax_is_the_published_rule_on_a_categorical() -> None:
    scripted, z = _drawn(CATEGORICAL)
    gamma, p = CATEGORICAL.decoder().gamma(z), CATEGORICAL.scores.softmax(-1)

    def along(q: Tensor) -> Tensor:
        return q * (gamma - (q * gamma).sum(-1, keepdim=True))

    check(pb.ReinMax(), scripted, 2 * along((p + z) / 2) - along(p) / 2)


def test_sparse_expectation_is_the_exact_gradient_of_the_weighted_losses(world: World) -> None:
    """By finite differences on the objective itself; the losses of all combinations for several structures."""
    estimator, h = pb.SparseExpectation(), 1e-6
    found = surrogate(estimator, world, world.decoder())
    for part in torch.nonzero(world.allowed)[::4]:
        values = []
        for sign in (1, -1):
            scores = world.scores.clone()
            scores[tuple(part)] += sign * h
            values.append(estimator.objective(world.structure, scores, world.decoder())[part[0]].item())
        assert found[tuple(part)] == pytest.approx((values[0] - values[1]) / (2 * h), abs=1e-5)


def test_sparse_expectation_on_a_categorical_is_sparsemax() -> None:
    leaf, decoder = CATEGORICAL.leaf(), CATEGORICAL.decoder()
    p = pb.Categorical().sparsemap(leaf)
    every = torch.stack([decoder(torch.eye(4).double()[k].expand(5, 4)) for k in range(4)], -1).detach()
    (expected,) = torch.autograd.grad((p * every).sum(), leaf)
    check(pb.SparseExpectation(), CATEGORICAL, expected)
