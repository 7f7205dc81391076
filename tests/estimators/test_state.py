"""Estimators with state are modules: a model that holds one saves it, casts it and copies it."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pullback as pb

STATEFUL = {
    "moving average": lambda: pb.ScoreFunction(pb.parts.MovingAverage()),
    "control variate": lambda: pb.ScoreFunction(pb.parts.ControlVariate()),
    "adaptive": pb.AdaptiveIMLE,
    "wrapped": lambda: pb.Standardized(pb.ScoreFunction(pb.parts.MovingAverage())),
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
    assert fresh.estimator.same_options(model.estimator)


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
    assert estimator.same_options(pb.AdaptiveIMLE(alpha=2.0, rate=0.25))
    assert "alpha=2.0" in repr(estimator)
    with torch.no_grad():
        before = estimator.alpha.item()
        estimator.objective(pb.Categorical(), torch.eye(3), lambda z: z[:, 0])
    assert estimator.alpha.item() == before


def test_modules_without_state_say_so() -> None:
    with pytest.raises(ValueError, match="has no state"):
        pb.Standardized(pb.SPIGOT()).load_state_dict({"mean": torch.zeros(1)})


class Learned(pb.parts.Baseline):
    """A user's own baseline: a parameter, a buffer that is saved, and one that is not."""

    def __init__(self, first: float = 0.5) -> None:
        super().__init__()
        self.first = first
        self.level = nn.Parameter(torch.tensor(first, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.float64))
        self.register_buffer("last", torch.zeros((), dtype=torch.float64), persistent=False)

    def advantages(self, losses: torch.Tensor) -> torch.Tensor:
        self.seen += losses.numel()
        return losses - self.level.detach()


class Pair(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.a, self.b = STATEFUL[name](), STATEFUL[name]()


@pytest.mark.parametrize("name", STATEFUL)
def test_pytorch_sees_both_of_two_equally_configured_estimators(name: str) -> None:
    pair = Pair(name)
    assert {key.split(".")[0] for key, _ in pair.named_buffers()} == {"a", "b"}
    assert [key for key, _ in pair.named_children()] == ["a", "b"]
    assert not pair.eval().b.training
    assert all(buffer.device.type == "meta" for buffer in pair.to("meta").b.buffers())
    averaged = torch.optim.swa_utils.AveragedModel(Pair(name), use_buffers=True)
    assert {key.split(".")[1] for key, _ in averaged.named_buffers() if "." in key} == {"a", "b"}


@pytest.mark.parametrize("name", STATEFUL)
def test_a_module_is_equal_to_itself_only_and_its_options_are_compared_by_name(name: str) -> None:
    a, b = STATEFUL[name](), STATEFUL[name]()
    assert a == a
    assert a != b
    assert len({a, b, a}) == 2
    assert a.same_options(b)
    assert not pb.ScoreFunction(pb.parts.MovingAverage(0.1)).same_options(pb.ScoreFunction(pb.parts.MovingAverage(0.2)))
    assert not a.same_options(pb.SPIGOT())


def test_a_learned_baseline_is_trained_saved_and_loaded() -> None:
    pair = nn.ModuleList([pb.ScoreFunction(Learned()), pb.ScoreFunction(Learned())])
    assert [key for key, _ in pair.named_parameters()] == ["0.baseline.level", "1.baseline.level"]
    state = pair.state_dict()
    assert sorted(state) == [f"{i}.baseline.{name}" for i in (0, 1) for name in ("level", "seen")]
    with torch.no_grad():
        pair[0].baseline.level.fill_(2.0)
        pair[0].baseline.seen.fill_(3.0)
    assert state["0.baseline.level"] == 0.5
    assert state["0.baseline.seen"] == 0
    assert pair.state_dict(keep_vars=True)["0.baseline.level"] is pair[0].baseline.level
    other = nn.ModuleList([pb.ScoreFunction(Learned()), pb.ScoreFunction(Learned())])
    other.load_state_dict(pair.state_dict())
    assert [each.baseline.level.item() for each in other] == [2.0, 0.5]
    assert [each.baseline.seen.item() for each in other] == [3.0, 0.0]


def test_an_estimator_whose_only_state_is_a_parameter_loads_it() -> None:
    class Offset(pb.parts.Baseline):
        def __init__(self) -> None:
            super().__init__()
            self.level = nn.Parameter(torch.zeros(()))

        def advantages(self, losses: torch.Tensor) -> torch.Tensor:
            return losses - self.level.detach()

    estimator = pb.ScoreFunction(Offset())
    estimator.load_state_dict({"baseline.level": torch.ones(())})
    assert estimator.baseline.level == 1


def test_an_inner_call_gives_the_buffers_of_equal_estimators_back() -> None:
    pair = nn.ModuleList([Learned(), Learned()])

    def downstream(z: torch.Tensor) -> torch.Tensor:
        return pair[0].advantages(z[:, 0]) + pair[1].advantages(z[:, 1])

    pb.SPIGOTCE().objective(pb.Categorical(), torch.randn(5, 3, requires_grad=True), downstream).sum().backward()
    assert [each.seen.item() for each in pair] == [5, 5]


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_the_count_of_nonzeros_decays(decay: float) -> None:
    """The step of 10 moves the argmax from the first class to another one: 2 entries of the difference, which was 1 before."""
    estimator = pb.AdaptiveIMLE(alpha=10.0, rate=0.0, decay=decay, temperature=0.0)
    expected = 1.0
    for _ in range(3):
        scores = torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True)
        estimator.objective(pb.Categorical(), scores, lambda z: z @ torch.tensor([1.0, 0.0, 0.0])).sum().backward()
        expected = decay * expected + (1 - decay) * 2
        assert float(estimator.nonzeros) == pytest.approx(expected)
