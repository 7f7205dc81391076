"""Estimators as layers, and at evaluation."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from estimators.worlds import CATEGORICAL, REGISTERED, World, supported
from pullback.estimators.registry import Entry

NOT_LAYERS = (
    "sfe", "sfe-baseline", "sfe-leave-one-out", "sfe-self-critical", "sfe-control-variate", "reinmax-control-variate",
    "spigot-ce", "spigot-eg", "sparse-expectation",
)  # fmt: skip
LAYERS = [entry for entry in REGISTERED if entry.name not in NOT_LAYERS]


@pytest.mark.parametrize("entry", LAYERS, ids=lambda entry: entry.name)
def test_a_layer_is_the_objective_with_weights_of_one(entry: Entry, world: World) -> None:
    supported(entry, world)
    gradients = []
    for as_layer in (True, False):
        torch.manual_seed(0)
        estimator = entry.make()
        scores, decoder = world.leaf(), world.decoder()
        if as_layer:
            losses = decoder(estimator(world.structure, scores))
        else:
            losses = estimator.objective(world.structure, scores, decoder)
        losses.sum().backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", NOT_LAYERS)
def test_others_say_to_use_objective(name: str) -> None:
    estimator = pb.estimators.registry.create(name)
    with pytest.raises(TypeError, match=r"cannot be used as a layer.*Use estimator.objective"):
        estimator(pb.Categorical(), torch.zeros(2, 3))


def test_more_steps_need_objective_too() -> None:
    with pytest.raises(TypeError, match="its inner steps call the decoder again"):
        pb.SPIGOT(steps=2)(pb.Categorical(), torch.zeros(2, 3))


@pytest.mark.parametrize("kind", [pb.IMLE, pb.AdaptiveIMLE])
def test_several_samples_need_objective_too(kind: type[pb.IMLE]) -> None:
    with pytest.raises(TypeError, match="the decoder sees several samples"):
        kind(1.0, samples=2)(pb.Categorical(), torch.zeros(2, 3))


def test_the_layers_gamma_is_the_incoming_gradient() -> None:
    """After a mean the step is 1/B of the stated one: the documented price of the plain layer."""
    decoder, b = CATEGORICAL.decoder(), CATEGORICAL.size
    scores = CATEGORICAL.leaf()
    decoder(pb.SPIGOT(step_size=b)(CATEGORICAL.structure, scores)).mean().backward()
    z = CATEGORICAL.structure.argmax(CATEGORICAL.scores)
    expected = z - CATEGORICAL.structure.sparsemap(z - decoder.gamma(z))
    torch.testing.assert_close(scores.grad, expected)


def test_predict_is_without_noise(entry: Entry, world: World) -> None:
    supported(entry, world)
    estimator, state = entry.make(), torch.get_rng_state()
    z = estimator.predict(world.structure, world.scores)
    assert torch.equal(torch.get_rng_state(), state)
    if entry.sees == "structure":
        torch.testing.assert_close(z, world.structure.argmax(world.scores))


def test_predict_can_force_the_argmax(entry: Entry, world: World) -> None:
    supported(entry, world)
    z = entry.make().predict(world.structure, world.scores, argmax=True)
    torch.testing.assert_close(z, world.structure.argmax(world.scores))


def test_relaxations_predict_their_relaxation(world: World) -> None:
    structure, scores = world.structure, world.scores
    torch.testing.assert_close(pb.Marginals().predict(structure, scores), structure.marginals(scores))
    torch.testing.assert_close(pb.SparseMAP().predict(structure, scores), structure.sparsemap(scores))
    warm = pb.PerturbedMarginals(temperature=0.5).predict(structure, scores)
    torch.testing.assert_close(warm, structure.marginals(scores / 0.5))
