"""Inner calls of the decoder: the same decoder as in the forward pass, and no trace of having been called."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pullback as pb
from pullback.estimators.buffers import modules_named_by

INNER = [pb.STEIdentity(0.5, steps=3), pb.SPIGOT(0.5, steps=3), pb.SPIGOTCE(0.5, steps=2), pb.SPIGOTEG(0.5, steps=2)]
B, K, HIDDEN = 6, 4, 8


@pytest.fixture(params=INNER, ids=repr)
def estimator(request: pytest.FixtureRequest) -> pb.Estimator:
    return request.param


def _scores() -> Tensor:
    return torch.randn(B, K, generator=torch.Generator().manual_seed(0)).requires_grad_()


class Recording(nn.Module):
    """A random layer that remembers its noise."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.drawn.append(torch.rand_like(x))
        return x * self.drawn[-1]


def test_every_call_sees_the_same_random_numbers(estimator: pb.Estimator) -> None:
    noise = Recording()
    estimator.objective(pb.Categorical(), _scores(), lambda z: noise(z).square().sum(-1)).mean().backward()
    assert len(noise.drawn) > 1
    for drawn in noise.drawn[1:]:
        assert torch.equal(drawn, noise.drawn[0])


def test_generators_continue_as_after_one_call(estimator: pb.Estimator) -> None:
    noise = Recording()

    def run(estimator: pb.Estimator) -> Tensor:
        torch.manual_seed(0)
        estimator.objective(pb.Categorical(), _scores(), lambda z: noise(z).square().sum(-1)).mean().backward()
        return torch.rand(3)

    assert torch.equal(run(estimator), run(pb.STEIdentity()))


def test_dropout_masks_are_those_of_the_forward_pass(estimator: pb.Estimator) -> None:
    """With the mask of the forward pass written into the weights, nothing changes."""
    torch.manual_seed(3)
    mask = nn.functional.dropout(torch.ones(B, K), 0.5)

    def gradient(downstream: Any) -> Tensor:
        torch.manual_seed(3)
        scores = _scores()
        estimator.objective(pb.Categorical(), scores, downstream).sum().backward()
        assert scores.grad is not None
        return scores.grad

    cost = torch.arange(1.0, K + 1)
    random = gradient(lambda z: (nn.functional.dropout(z, 0.5) @ cost).square())
    torch.testing.assert_close(random, gradient(lambda z: ((z * mask) @ cost).square()))


class Model(nn.Module):
    """A decoder with batch-norm, in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(K, HIDDEN)
        self.norm = nn.BatchNorm1d(HIDDEN)
        self.last = nn.Linear(HIDDEN, 1)

    def forward(self, z: Tensor) -> Tensor:
        return self.last(self.norm(self.first(z)).relu()).square().sum(-1)

    def method(self, z: Tensor) -> Tensor:
        return self(z)


def _closure(model: Model) -> Any:
    def inside(z: Tensor) -> Tensor:
        return model(z)

    return lambda z: inside(z)


class Holder:
    def __init__(self, model: Model) -> None:
        self.model = model

    def downstream(self, z: Tensor) -> Tensor:
        return self.model(z)


WAYS_TO_NAME = {
    "module": lambda model: model,
    "method": lambda model: model.method,
    "closure": _closure,
    "partial": lambda model: functools.partial(lambda decoder, z: decoder(z), model),
    "default": lambda model: lambda z, decoder=model: decoder(z),
    "method of another object": lambda model: Holder(model).downstream,
    "in a list": lambda model: lambda z, decoders=[model]: decoders[0](z),
    "compiled": lambda model: torch.compile(model, backend="eager"),
}


@pytest.mark.parametrize("way", WAYS_TO_NAME)
def test_batch_norm_statistics_are_those_of_the_forward_z_alone(estimator: pb.Estimator, way: str) -> None:
    torch.manual_seed(0)
    model, alone = Model(), Model()
    alone.load_state_dict(model.state_dict())
    scores = _scores()
    estimator.objective(pb.Categorical(), scores, WAYS_TO_NAME[way](model)).mean().backward()
    alone(pb.Categorical().argmax(scores.detach())).mean().backward()
    for (name, found), expected in zip(model.named_buffers(), alone.buffers(), strict=True):
        torch.testing.assert_close(found, expected, msg=name)
    for (name, found), expected in zip(model.named_parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, msg=name)


def test_a_function_with_an_empty_closure_variable_is_no_trouble() -> None:
    def downstream(z: Tensor) -> Tensor:
        return later(z) if z is None else z.square().sum(-1)

    assert modules_named_by(downstream) == set()
    later = None


def test_inner_calls_leave_no_gradient_on_anything(estimator: pb.Estimator) -> None:
    """Not on the decoder's parameters, nor on what it reads from the encoder."""
    encoder, decoder = nn.Linear(3, K + HIDDEN), nn.Linear(K + HIDDEN, 1)
    twins = nn.Linear(3, K + HIDDEN), nn.Linear(K + HIDDEN, 1)
    for twin, original in zip(twins, (encoder, decoder), strict=True):
        twin.load_state_dict(original.state_dict())
    x = torch.randn(B, 3)

    scores, features = encoder(x).split([K, HIDDEN], 1)
    estimator.objective(
        pb.Categorical(), scores, lambda z: decoder(torch.cat([z, features], 1)).square().sum(-1)
    ).mean().backward()

    scores, features = twins[0](x).split([K, HIDDEN], 1)
    z = pb.Categorical().argmax(scores)
    twins[1](torch.cat([z, features], 1)).square().sum(-1).mean().backward()
    torch.testing.assert_close(decoder.weight.grad, twins[1].weight.grad)
    torch.testing.assert_close(encoder.weight.grad[K:], twins[0].weight.grad[K:])


def test_losses_without_a_gradient_are_an_error(estimator: pb.Estimator) -> None:
    losses_without = torch.no_grad()(lambda z: z.square().sum(-1))
    with pytest.raises(RuntimeError, match="returned losses without a gradient"):
        estimator.objective(pb.Categorical(), _scores(), losses_without).mean().backward()


def test_a_decoder_that_ignores_z_gives_a_zero_gradient(estimator: pb.Estimator) -> None:
    scores, bias = _scores(), torch.zeros(B, requires_grad=True)
    estimator.objective(pb.Categorical(), scores, lambda z: bias + 1).mean().backward()
    torch.testing.assert_close(scores.grad, torch.zeros(B, K), rtol=0, atol=1e-6)


def test_the_last_call_within_objective_is_the_forward_one(estimator: pb.Estimator) -> None:
    """So that what `downstream` keeps on the side, predictions say, is of the forward's z."""
    seen = []

    def downstream(z: Tensor) -> Tensor:
        seen.append(z.detach())
        return z.square().sum(-1)

    scores = _scores()
    estimator.objective(pb.Categorical(), scores, downstream)
    assert torch.equal(seen[-1], pb.Categorical().argmax(scores))
