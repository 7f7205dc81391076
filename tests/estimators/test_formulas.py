"""Every gradient against the paper's formula, written out here."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import World, surrogate

STEPS = [1, 2, 4]
STEP_SIZES = [0.1, 1.0, 7.0]


def _minus_inf(values: Tensor, allowed: Tensor) -> Tensor:
    return torch.where(allowed, values, -torch.inf)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("eta", STEP_SIZES)
class TestSurrogates:
    """The paper's algorithm 1, with weights on the losses."""

    def weights(self, world: World) -> Tensor:
        return torch.linspace(-1.0, 2.0, world.size, dtype=torch.float64)

    def check(self, estimator: pb.Estimator, world: World, expected: Tensor) -> None:
        weights = self.weights(world)
        found = surrogate(estimator, world, world.decoder(), weights)
        torch.testing.assert_close(found, weights.reshape(-1, *[1] * (expected.dim() - 1)) * expected)

    def test_ste_identity(self, world: World, eta: float, steps: int) -> None:
        decoder, z = world.decoder(), world.structure.argmax(world.scores)
        mu = z
        for _ in range(steps):
            mu = torch.where(world.allowed, mu - eta * decoder.gamma(mu), 0.0)
        self.check(pb.STEIdentity(eta, steps), world, z - mu)

    def test_spigot(self, world: World, eta: float, steps: int) -> None:
        decoder, z = world.decoder(), world.structure.argmax(world.scores)
        mu = z
        for _ in range(steps):
            mu = world.structure.sparsemap(_minus_inf(mu - eta * decoder.gamma(mu), world.allowed))
        self.check(pb.SPIGOT(eta, steps), world, z - mu)

    def test_spigot_ce(self, world: World, eta: float, steps: int) -> None:
        decoder, start = world.decoder(), world.structure.marginals(world.scores)
        mu = start
        for _ in range(steps):
            mu = world.structure.sparsemap(_minus_inf(mu - eta * decoder.gamma(mu), world.allowed))
        self.check(pb.SPIGOTCE(eta, steps), world, start - mu)

    def test_spigot_eg(self, world: World, eta: float, steps: int) -> None:
        decoder, start = world.decoder(), world.structure.marginals(world.scores)
        mu, scores = start, world.scores
        for _ in range(steps):
            scores = _minus_inf(scores - eta * decoder.gamma(mu), world.allowed)
            mu = world.structure.marginals(scores)
        self.check(pb.SPIGOTEG(eta, steps), world, start - mu)


@pytest.mark.parametrize("loss", [pb.losses.Perceptron(), pb.losses.CrossEntropy(), pb.losses.SparseMAPLoss()], ids=repr)
@pytest.mark.parametrize("start", [pb.parts.FromArgmax(), pb.parts.FromMarginals(), pb.parts.FromZero()], ids=repr)
@pytest.mark.parametrize("update", [pb.parts.Unconstrained(0.3), pb.parts.Projected(0.3)], ids=repr)
def test_every_combination_of_the_frame(world: World, loss: pb.losses.Perceptron, start: object, update: object) -> None:
    structure, scores, decoder = world.structure, world.scores, world.decoder()
    predictions = {
        pb.losses.Perceptron(): structure.argmax,
        pb.losses.CrossEntropy(): structure.marginals,
        pb.losses.SparseMAPLoss(): structure.sparsemap,
    }
    starts = {
        pb.parts.FromArgmax(): structure.argmax,
        pb.parts.FromMarginals(): structure.marginals,
        pb.parts.FromZero(): torch.zeros_like,
    }
    mu = starts[start](scores)
    for _ in range(2):
        moved = mu - 0.3 * decoder.gamma(mu)
        if isinstance(update, pb.parts.Projected):
            mu = structure.sparsemap(_minus_inf(moved, world.allowed))
        else:
            mu = torch.where(world.allowed, moved, 0.0)
    found = surrogate(pb.PulledBack(loss, start, update, steps=2), world, world.decoder())
    torch.testing.assert_close(found, predictions[loss](scores) - mu)


@pytest.mark.parametrize("estimator", [pb.Marginals(), pb.SparseMAP()], ids=repr)
def test_relaxations_have_the_exact_gradient(world: World, estimator: pb.Estimator) -> None:
    decoder, h = world.decoder(), 1e-6
    found = surrogate(estimator, world, decoder)
    for part in torch.nonzero(world.allowed)[::3]:
        up, down = world.scores.clone(), world.scores.clone()
        up[tuple(part)] += h
        down[tuple(part)] -= h
        with torch.no_grad():
            values = [decoder(estimator(world.structure, s))[part[0]] for s in (up, down)]
        assert found[tuple(part)] == pytest.approx((values[0] - values[1]).item() / (2 * h), abs=1e-6)


def test_ste_marginals_is_the_whole_jacobian(world: World) -> None:
    decoder = world.decoder()
    found = surrogate(pb.STEMarginals(), world, decoder)
    scores = world.leaf()
    gamma = decoder.gamma(world.structure.argmax(world.scores))
    (expected,) = torch.autograd.grad(world.structure.marginals(scores), scores, gamma)
    torch.testing.assert_close(found, expected)


def test_ste_softmax_is_not_its_diagonal() -> None:
    scores = torch.tensor([[0.3, -0.2, 1.0]], dtype=torch.float64, requires_grad=True)
    gamma = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    pb.STEMarginals()(pb.Categorical(), scores).backward(gamma)
    p = scores.detach().softmax(-1)
    torch.testing.assert_close(scores.grad, p * (gamma - (p * gamma).sum(-1, keepdim=True)))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", [pb.PerturbedMarginals, pb.PerturbAndMAP])
def test_perturbations(world: World, kind: type[pb.PerturbAndMAP], temperature: float) -> None:
    noise = torch.randn(world.scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    decoder = world.decoder()
    found = surrogate(kind(temperature, noise=lambda scores: noise), world, decoder)

    scores = world.leaf()
    mu = world.structure.marginals((scores + noise) / temperature)
    z = mu.detach() if kind is pb.PerturbedMarginals else world.structure.argmax(world.scores + noise)
    torch.testing.assert_close(decoder.seen[-1], z)
    (expected,) = torch.autograd.grad(mu, scores, decoder.gamma(z))
    torch.testing.assert_close(found, expected)


def test_default_noise_is_standard_gumbel() -> None:
    torch.manual_seed(0)
    noise = pb.PerturbAndMAP().noise(torch.zeros(200_000, dtype=torch.float64))
    for quantile in (0.01, 0.1, 0.5, 0.9, 0.99):
        value = -torch.log(-torch.log(torch.tensor(quantile, dtype=torch.float64)))
        assert (noise <= value).double().mean().item() == pytest.approx(quantile, abs=0.004)
