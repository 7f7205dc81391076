"""Estimators as values: printed, compared, turned into a dict and back."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import CATEGORICAL, surrogate
from pullback.estimators import Estimator
from pullback.estimators.registry import Entry

FRAMES = [
    pb.PulledBack(pb.losses.CrossEntropy(), pb.parts.FromZero(), pb.parts.Projected(0.3), steps=2),
    pb.PulledBack(pb.losses.SparseMAPLoss(), pb.parts.FromArgmax(), pb.parts.Unconstrained(2), steps=1),
    pb.PulledBack(pb.losses.CrossEntropy(), pb.parts.FromMarginals(), pb.parts.Mirror(1.0)),
]


def _round_trip(estimator: Estimator) -> Estimator:
    return Estimator.from_dict(json.loads(json.dumps(estimator.to_dict())))


def test_through_json_and_back(entry: Entry) -> None:
    estimator = entry.make()
    again = _round_trip(estimator)
    assert again.same_options(estimator)
    assert type(again) is type(estimator)
    stateful = isinstance(estimator, torch.nn.Module)
    assert (again == estimator) is not stateful
    assert (hash(again) == hash(estimator)) is not stateful
    assert repr(again) == repr(estimator)


@pytest.mark.parametrize("estimator", FRAMES, ids=repr)
def test_frames_through_json_and_back(estimator: pb.PulledBack) -> None:
    assert _round_trip(estimator) == estimator


def test_the_repr_makes_the_object_again(entry: Entry) -> None:
    assert eval(repr(entry.make()), vars(pb) | vars(pb.parts)).same_options(entry.make())


def test_copies_and_pickles(entry: Entry) -> None:
    estimator = entry.make()
    assert copy.deepcopy(estimator).same_options(estimator)
    assert pickle.loads(pickle.dumps(estimator)).same_options(estimator)


def test_different_options_are_different() -> None:
    assert pb.SPIGOT(0.1) != pb.SPIGOT(0.2)
    assert pb.SPIGOT(0.1) != pb.SPIGOTCE(0.1)
    assert pb.SPIGOT() != "SPIGOT"
    assert not pb.ScoreFunction().same_options(pb.ScoreFunction(pb.parts.MovingAverage()))
    assert pb.PerturbAndMAP() != pb.PerturbAndMAP(noise=torch.zeros_like)
    assert len({pb.SPIGOT(0.1), pb.SPIGOT(0.1), pb.SPIGOT(0.2)}) == 2


def test_named_estimators_are_instances_of_the_frame() -> None:
    spigot = pb.SPIGOTCE(0.1, steps=3)
    assert isinstance(spigot, pb.PulledBack)
    frame = pb.PulledBack(pb.losses.CrossEntropy(), pb.parts.FromMarginals(), pb.parts.Projected(0.1), steps=3)
    assert (spigot.loss, spigot.start, spigot.update, spigot.steps) == tuple(frame.options().values())
    decoder = CATEGORICAL.decoder()
    torch.testing.assert_close(surrogate(spigot, CATEGORICAL, decoder), surrogate(frame, CATEGORICAL, decoder))


def test_mistakes_in_a_dict_are_named() -> None:
    with pytest.raises(ValueError, match=r"'SPIGTO'.*did you mean 'SPIGOT'"):
        Estimator.from_dict({"type": "SPIGTO"})
    with pytest.raises(ValueError, match="'type' is None"):
        Estimator.from_dict({"step_size": 1.0})
    with pytest.raises(ValueError, match=r"SPIGOT has no option \['stepsize'\]; its options are \['step_size'"):
        Estimator.from_dict({"type": "SPIGOT", "stepsize": 1.0})
    with pytest.raises(ValueError, match="not the name of a known Estimator"):
        Estimator.from_dict({"type": "Perceptron"})
    with pytest.raises(ValueError, match="not the name of a known PulledBack"):
        pb.PulledBack.from_dict({"type": "Marginals"})


def test_what_does_not_go_into_a_config_says_so() -> None:
    with pytest.raises(TypeError, match="'step_size' is a tensor, which cannot be saved in a config"):
        pb.SPIGOT(torch.ones(3, 1)).to_dict()
    with pytest.raises(TypeError, match="'noise'"):
        pb.PerturbAndMAP(noise=torch.zeros_like).to_dict()
    assert "noise" not in pb.PerturbAndMAP().to_dict()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.SPIGOT(step_size=0.0), "SPIGOT: step_size is 0.0; it must be positive"),
        (lambda: pb.SPIGOT(steps=0), "SPIGOT: steps is 0; it must be an integer of at least 1"),
        (lambda: pb.SPIGOT(steps=1.5), "steps is 1.5"),
        (lambda: pb.PerturbAndMAP(temperature=-1.0), "PerturbAndMAP: temperature is -1.0; it must be positive"),
        (lambda: pb.parts.LeaveOneOut(1), "LeaveOneOut: samples is 1; it must be an integer of at least 2"),
        (lambda: pb.parts.MovingAverage(factor=0.0), r"factor is 0.0; it must be in \(0, 1\]"),
        (lambda: pb.parts.MovingAverage(groups=0), "groups is 0"),
        (
            lambda: pb.PulledBack(pb.losses.Perceptron(), pb.parts.FromArgmax(), pb.parts.Mirror()),
            r"Mirror\(step_size=1.0\) can only start from FromMarginals\(\), not from FromArgmax\(\)",
        ),
    ],
)
def test_wrong_options_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", [pb.STEIdentity, pb.SPIGOT, pb.SPIGOTCE, pb.SPIGOTEG])
def test_a_step_size_for_each_example(kind: type[pb.SPIGOT]) -> None:
    sizes = torch.tensor([0.1, 0.5, 1.0, 2.0, 4.0])
    together = surrogate(kind(sizes[:, None], steps=2), CATEGORICAL, CATEGORICAL.decoder())
    assert together.dtype == torch.float64
    for b, size in enumerate(sizes.tolist()):
        alone = surrogate(kind(size, steps=2), CATEGORICAL, CATEGORICAL.decoder())
        torch.testing.assert_close(together[b], alone[b], rtol=1e-6, atol=1e-6)
    assert kind(sizes) == kind(sizes.clone())
    assert kind(sizes) != kind(2 * sizes)
    assert hash(kind(sizes)) == hash(kind(sizes.clone()))


class ClippedSTE(pb.estimators.Layer):
    """A user's own estimator: straight-through with a bounded gradient."""

    def __init__(self, bound: float = 1.0) -> None:
        self.bound = bound

    def __call__(self, structure: pb.Structure, scores: Tensor) -> Tensor:
        bounded = scores.clone()
        bounded.register_hook(lambda gradient: gradient.clamp(-self.bound, self.bound))
        return structure.argmax(scores) + (bounded - bounded.detach())

    def noiseless(self, structure: pb.Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)


def test_a_users_own_estimator_has_it_all() -> None:
    estimator = ClippedSTE(bound=0.25)
    assert _round_trip(estimator) == estimator
    gradient = surrogate(estimator, CATEGORICAL, CATEGORICAL.decoder())
    assert gradient.abs().max() <= 0.25
    z = CATEGORICAL.structure.argmax(CATEGORICAL.scores)
    assert torch.equal(estimator.predict(CATEGORICAL.structure, CATEGORICAL.scores), z)
