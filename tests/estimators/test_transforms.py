"""Estimators under the transforms of `torch.func`: `grad` works, `vmap` and forward mode are clear errors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from each import each
from estimators.worlds import CATEGORICAL, WORLDS, World, supported
from pullback.estimators.registry import Entry

TREES = next(world for world in WORLDS if world.name == "trees")


def _total(entry: Entry, world: World) -> object:
    estimator, cost = entry.make(), torch.linspace(-1, 1, world.scores[0].numel(), dtype=torch.float64)

    def total(scores: Tensor) -> Tensor:
        return estimator.objective(world.structure, scores, lambda z: (z.flatten(1) @ cost).exp()).sum()

    return total


@each("world", [CATEGORICAL, TREES])
def test_func_grad_is_the_ordinary_gradient(entry: Entry, world: World) -> None:
    supported(entry, world)
    if entry.name == "sparse-expectation":
        pytest.skip("its weights come from the solver's active set")
    if entry.name in ("sfe-baseline", "sfe-control-variate", "adaptive-imle"):
        with pytest.raises(NotImplementedError, match=r"has state that training moves, which torch.func"):
            torch.func.grad(_total(entry, world))(world.scores)
        return
    torch.manual_seed(0)
    leaf = world.leaf()
    (expected,) = torch.autograd.grad(_total(entry, world)(leaf), leaf)
    torch.manual_seed(0)
    torch.testing.assert_close(torch.func.grad(_total(entry, world))(world.scores), expected)


@pytest.mark.parametrize("estimator", [pb.SPIGOT(), pb.SPIGOTCE(), pb.Blackbox(1.0)], ids=repr)
def test_other_transforms_say_what_to_do(estimator: pb.Estimator) -> None:
    def total(scores: Tensor) -> Tensor:
        return estimator.objective(pb.Categorical(validate=False), scores, lambda z: z.square().sum(-1)).sum()

    scores = torch.randn(3, 2, 4)
    with pytest.raises(NotImplementedError, match="no forward mode"):
        torch.func.jvp(total, (scores[0],), (scores[1],))
    with pytest.raises(NotImplementedError, match=r"torch.vmap over a surrogate gradient is not supported"):
        torch.vmap(torch.func.grad(total))(scores)


@pytest.mark.parametrize("estimator", [pb.STEIdentity(), pb.SPIGOT()], ids=repr)
def test_forward_mode_in_the_weights_of_the_decoder(estimator: pb.Estimator) -> None:
    scores, weights, tangent = torch.randn(3, 2, 4).double()
    z = pb.Categorical().argmax(scores)

    def losses(weights: Tensor) -> Tensor:
        return estimator.objective(pb.Categorical(), scores, lambda z: (z * weights).sum(-1).square())

    expected = torch.func.jvp(lambda w: (z * w).sum(-1).square(), (weights,), (tangent,))
    torch.testing.assert_close(torch.func.jvp(losses, (weights,), (tangent,)), expected)


@pytest.mark.filterwarnings("error:Converting a tensor with requires_grad")
def test_a_graph_of_the_backward_pass_is_no_reason_for_a_warning() -> None:
    scores = torch.randn(2, 4, requires_grad=True)
    losses = pb.STEIdentity().objective(pb.Categorical(), scores, lambda z: z.square().sum(-1))
    torch.autograd.grad(losses.sum(), scores, create_graph=True)
