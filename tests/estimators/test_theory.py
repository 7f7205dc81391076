"""What the paper says about the estimators, as properties."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import CATEGORICAL, World, surrogate

SPIGOTS = [pb.SPIGOT, pb.SPIGOTCE, pb.SPIGOTEG]


@pytest.mark.parametrize("eta", [0.1, 1.0, 10.0])
def test_spigot_is_ste_identity_while_the_step_stays_inside_the_polytope(world: World, eta: float) -> None:
    z, inside = world.structure.argmax(world.scores), world.structure.marginals(world.scores)
    gamma = (z - inside) / eta

    def gradient(estimator: pb.Estimator) -> Tensor:
        return surrogate(estimator, world, lambda mu: (gamma * mu).flatten(1).sum(1))

    torch.testing.assert_close(gradient(pb.SPIGOT(eta)), gradient(pb.STEIdentity(eta)))
    torch.testing.assert_close(gradient(pb.SPIGOT(eta)), z - inside)


def test_spigot_differs_from_ste_identity_outside(world: World) -> None:
    assert not torch.allclose(*[surrogate(e, world, world.decoder()) for e in (pb.SPIGOT(5.0), pb.STEIdentity(5.0))])


@pytest.mark.parametrize("eta", [1e-12, 1e-3, 1.0])
def test_one_step_of_ste_identity_is_the_step_times_gamma_however_small(world: World, eta: float) -> None:
    decoder = world.decoder()
    gamma = torch.where(world.allowed, decoder.gamma(world.structure.argmax(world.scores)), 0.0)
    torch.testing.assert_close(surrogate(pb.STEIdentity(eta), world, decoder), eta * gamma, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("kind", SPIGOTS)
@pytest.mark.parametrize("steps", [1, 3])
def test_surrogate_is_the_gradient_of_the_intermediate_loss(world: World, kind: type[pb.SPIGOT], steps: int) -> None:
    found = surrogate(kind(0.7, steps), world, world.decoder())
    loss = pb.losses.Perceptron() if kind is pb.SPIGOT else pb.losses.CrossEntropy()
    prediction = world.structure.argmax if kind is pb.SPIGOT else world.structure.marginals
    label = prediction(world.scores) - found
    scores = world.leaf()
    (expected,) = torch.autograd.grad(loss(world.structure, scores, label).sum(), scores)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", SPIGOTS)
@pytest.mark.parametrize("steps", [1, 3])
def test_surrogates_sum_to_zero_over_each_constraint(world: World, kind: type[pb.SPIGOT], steps: int) -> None:
    total = world.groups(surrogate(kind(2.0, steps), world, world.decoder()))
    torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-9)


def test_spigot_eg_tends_to_the_jacobian_of_the_marginals(world: World) -> None:
    decoder, eta = world.decoder(), 1e-6
    scores = world.leaf()
    mu = world.structure.marginals(scores)
    (expected,) = torch.autograd.grad(mu, scores, decoder.gamma(mu.detach()))
    found = surrogate(pb.SPIGOTEG(eta), world, decoder) / eta
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_one_mirror_step_on_a_categorical_is_a_softmax() -> None:
    scores, eta = CATEGORICAL.scores, 0.8
    decoder = CATEGORICAL.decoder()
    p = scores.softmax(-1)
    expected = p - (scores - eta * decoder.gamma(p)).softmax(-1)
    torch.testing.assert_close(surrogate(pb.SPIGOTEG(eta), CATEGORICAL, decoder), expected)


def test_one_mirror_step_is_exponentiated_gradient() -> None:
    mu, eta = CATEGORICAL.scores.softmax(-1), 0.8
    decoder = CATEGORICAL.decoder()
    raised = mu * torch.exp(-eta * decoder.gamma(mu))
    expected = mu - raised / raised.sum(-1, keepdim=True)
    torch.testing.assert_close(surrogate(pb.SPIGOTEG(eta), CATEGORICAL, decoder), expected)


@pytest.mark.parametrize("kind", SPIGOTS)
def test_the_pulled_back_label_is_a_better_guess_than_its_start(world: World, kind: type[pb.SPIGOT]) -> None:
    decoder = world.decoder()
    estimator = kind(1e-3)
    start = world.structure.argmax(world.scores) if kind is pb.SPIGOT else world.structure.marginals(world.scores)
    label = start - surrogate(estimator, world, decoder)
    assert (decoder(label) <= decoder(start) + 1e-9).all()
