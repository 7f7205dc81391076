"""Estimators with state are modules: a model that holds one saves it, casts it and copies it."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pullback as pb

STATEFUL = {
    "moving average": lambda: pb.ScoreFunction(pb.MovingAverage()),
    "adaptive": pb.AdaptiveIMLE,
    "wrapped": lambda: pb.Standardized(pb.ScoreFunction(pb.MovingAverage())),
}


class Model(nn.Module):
    def __init__(self, estimator: pb.Estimator) -> None:
        super().__init__()
        self.encoder = nn.Linear(3, 4)
        self.estimator = estimator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.estimator.objective(pb.Categorical(), self.encoder(x), lambda z: (3 + z[:, 0]).square())


@pytest.fixture(params=STATEFUL)
def model(request: pytest.FixtureRequest) -> Model:
    torch.manual_seed(0)
    model = Model(STATEFUL[request.param]())
    model(torch.randn(5, 3)).sum().backward()
    return model


def _changed(model: Model) -> dict[str, torch.Tensor]:
    return {name: value for name, value in model.state_dict().items() if name.startswith("estimator")}


def test_the_state_is_in_the_models_state_dict(model: Model) -> None:
    state = _changed(model)
    fresh = Model(type(model.estimator).from_dict(model.estimator.to_dict()))
    assert state
    assert any(not torch.equal(state[name], value) for name, value in _changed(fresh).items())
    fresh.load_state_dict(model.state_dict())
    torch.testing.assert_close(_changed(fresh), state)
    assert fresh.estimator == model.estimator


def test_state_survives_copies_and_casts(model: Model) -> None:
    torch.testing.assert_close(_changed(copy.deepcopy(model)), _changed(model))
    model.half().float()
    model(torch.randn(5, 3)).sum().backward()
    assert all(value.dtype == torch.float64 for value in _changed(model).values())


def test_a_saved_state_does_not_change_later(model: Model) -> None:
    state = _changed(model)
    before = copy.deepcopy(state)
    model(torch.randn(5, 3)).sum().backward()
    torch.testing.assert_close(state, before)


def test_alpha_is_its_current_value_and_options_are_the_first() -> None:
    estimator = pb.AdaptiveIMLE(alpha=2.0, rate=0.25)
    estimator.objective(pb.Categorical(), torch.eye(3, requires_grad=True), lambda z: z[:, 0]).sum().backward()
    assert estimator.state_dict()["alpha"] == estimator.alpha
    assert estimator.alpha.item() in (1.75, 2.25)
    assert estimator == pb.AdaptiveIMLE(alpha=2.0, rate=0.25)
    assert "alpha=2.0" in repr(estimator)
    with torch.no_grad():
        before = estimator.alpha.item()
        estimator.objective(pb.Categorical(), torch.eye(3), lambda z: z[:, 0])
    assert estimator.alpha.item() == before


def test_modules_without_state_say_so() -> None:
    with pytest.raises(ValueError, match="has no state"):
        pb.Standardized(pb.SPIGOT()).load_state_dict({"mean": torch.zeros(1)})
