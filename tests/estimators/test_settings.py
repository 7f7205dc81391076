"""Bad settings, and estimators that do not fit a structure: errors that say what to use instead."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import Tensor

import pullback as pb
from each import each
from estimators.worlds import CATEGORICAL, World, surrogate
from pullback.estimators.registry import ENTRIES, Entry, create


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.Blackbox(0.0), "Blackbox: step_size is 0.0; it must be positive"),
        (lambda: pb.Blackbox(-1), "Blackbox: step_size is -1; it must be positive"),
        (lambda: pb.IMLE(float("nan")), "IMLE: step_size is nan; it must be positive"),
        (lambda: pb.IMLE(1.0, temperature=-0.1), "IMLE: temperature is -0.1; it must be at least 0"),
        (lambda: pb.IMLE(1.0, samples=0), "IMLE: samples is 0; it must be an integer of at least 1"),
        (lambda: pb.AdaptiveIMLE(alpha=0), "AdaptiveIMLE: alpha is 0; it must be positive"),
        (lambda: pb.AdaptiveIMLE(decay=1.0), r"AdaptiveIMLE: decay is 1.0; it must be in \[0, 1\)"),
        (lambda: pb.AdaptiveIMLE(rate=-1.0), "AdaptiveIMLE: rate is -1.0; it must be at least 0"),
        (lambda: pb.AdaptiveIMLE(samples=0), "AdaptiveIMLE: samples is 0"),
        (lambda: pb.LPGD(0.0, 1.0), "LPGD: step_size is 0.0"),
        (lambda: pb.LPGD(1.0, 0.0), "LPGD: rho is 0.0; it must be positive"),
        (lambda: pb.LPGD(1.0, 1.0, "both"), "side is 'both'; it must be 'lower', 'upper' or 'average'"),
        (lambda: pb.PerturbedArgmax(sigma=0.0), "PerturbedArgmax: sigma is 0.0"),
        (lambda: pb.PerturbedArgmax(samples=0), "PerturbedArgmax: samples is 0"),
        (lambda: pb.losses.PerturbedLoss(sigma=-1.0), "PerturbedLoss: sigma is -1.0"),
        (lambda: pb.PerturbedSparseMAP(temperature=0.0), "PerturbedSparseMAP: temperature is 0.0"),
        (lambda: pb.GumbelRao(0, 1.0), "GumbelRao: samples is 0; it must be an integer of at least 1"),
        (lambda: pb.GumbelRao(1, 0.0), "GumbelRao: temperature is 0.0; it must be positive"),
        (lambda: pb.Entmax(1.0), r"alpha is 1.0; it must be above 1 \(Marginals\(\) is softmax"),
        (lambda: pb.parts.SumOfGamma(0), "SumOfGamma: k is 0; it must be positive"),
        (lambda: pb.parts.SumOfGamma(2, terms=0), "SumOfGamma: terms is 0"),
        (lambda: pb.parts.FromSample(0), "FromSample: samples is 0"),
    ],
)
def test_bad_settings(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


REQUIRED = {"step_size": 1.0, "rho": 1.0, "samples": 2, "temperature": 1.0, "k": 2}
OBJECTS = ("noise", "baseline", "estimator", "loss", "start", "update")
NAMED = [
    pb.Blackbox, pb.IMLE, pb.AdaptiveIMLE, pb.LPGD, pb.GumbelRao, pb.PerturbedArgmax, pb.losses.PerturbedLoss,
    pb.PerturbedSparseMAP, pb.PerturbedMarginals, pb.PerturbAndMAP, pb.Entmax, pb.SPIGOT, pb.SPIGOTCE, pb.SPIGOTEG,
    pb.STEIdentity, pb.parts.SumOfGamma, pb.parts.FromSample, pb.parts.FromPerturbedArgmax, pb.parts.MovingAverage,
    pb.parts.LeaveOneOut, pb.parts.ControlVariate, pb.parts.Mirror, pb.parts.MirrorAtZero,
    pb.parts.Projected, pb.parts.Proximal, pb.parts.Unconstrained,
]  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_estimators_have_the_defaults_of_the_registry(entry: Entry) -> None:
    made = entry.make()
    if entry.make is not type(made):
        pytest.skip("the entry names a part of it, or has a control")
    assert made.same_options(type(made)())


@pytest.mark.parametrize("kind", NAMED, ids=lambda kind: kind.__name__)
@each("bad", [float("nan"), float("inf"), -1, "1", None, [1.0], 1j, torch.tensor([1.0, 0.0])])
def test_every_setting_says_what_it_must_be(kind: type, bad: object) -> None:
    parameters = inspect.signature(kind).parameters
    for name in set(parameters) - set(OBJECTS):
        required = {n: REQUIRED[n] for n, p in parameters.items() if p.default is p.empty}
        with pytest.raises((ValueError, TypeError), match=rf"{kind.__name__}: {name} is .*; .* must be"):
            kind(**required | {name: bad})


@pytest.mark.parametrize("kind", NAMED, ids=lambda kind: kind.__name__)
def test_a_bool_is_no_number(kind: type) -> None:
    parameters = inspect.signature(kind).parameters
    for name in set(parameters) - {*OBJECTS, "symmetric", "side"}:
        required = {n: REQUIRED[n] for n, p in parameters.items() if p.default is p.empty}
        with pytest.raises((ValueError, TypeError), match=rf"{kind.__name__}: {name} is True; it must be"):
            kind(**required | {name: True})


def test_errors_name_a_value_that_would_do() -> None:
    with pytest.raises(ValueError, match=r"such as 0\.05"):
        pb.parts.MovingAverage(0.0)
    with pytest.raises(TypeError, match=r"it must be a number, positive and finite, such as 1\.0"):
        pb.SPIGOT("0.1")
    with pytest.raises(TypeError, match=r"baseline is 'mean'; it must be a baseline, such as MovingAverage\(\)"):
        pb.ScoreFunction("mean")


def test_standardized_needs_an_estimator() -> None:
    with pytest.raises(TypeError, match="estimator is 'spigot'; it must be an estimator"):
        pb.Standardized("spigot")


@pytest.mark.parametrize(
    ("estimator", "instead"), [(pb.GumbelRao(2, 0.5), "PerturbAndMAP, or ReinMax"), (pb.Entmax(), "SparseMAP")], ids=repr
)
def test_categorical_estimators_say_what_to_use_for_other_structures(estimator: pb.Estimator, instead: str) -> None:
    with pytest.raises(TypeError, match=rf"works with Categorical\(\) only, not with DependencyTree.*use {instead}"):
        estimator(pb.DependencyTree(), torch.zeros(1, 3, 3, requires_grad=True))


class TwoOfFour(pb.Structure):
    """A structure that defines nothing but its argmax, as a matching does."""

    def argmax(self, scores: Tensor) -> Tensor:
        return torch.zeros_like(scores).scatter(-1, scores.topk(2, dim=-1).indices, 1.0)


def needs_argmax_alone(entry: Entry) -> bool:
    """Perturb-and-MAP replaces marginals that a structure lacks by SparseMAP."""
    return not {"marginals", "sample"} & entry.inference.keys() or isinstance(entry.make(), pb.PerturbAndMAP)


ARGMAX_ALONE = [entry.name for entry in ENTRIES if entry.only is None and needs_argmax_alone(entry)]


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.only is None], ids=lambda entry: entry.name)
def test_an_argmax_is_enough_for_some_and_others_say_what_is_missing(entry: Entry) -> None:
    torch.manual_seed(0)
    world = World("two-of-four", TwoOfFour(), CATEGORICAL.scores, CATEGORICAL.allowed)
    if entry.name in ARGMAX_ALONE:
        assert surrogate(entry.make(), world, world.decoder()).abs().sum() > 0
        return
    missing = "(sample|marginals)" if "sample" in entry.inference else "marginals"
    with pytest.raises(NotImplementedError, match=rf"TwoOfFour does not define `{missing}`.*SPIGOT"):
        surrogate(entry.make(), world, world.decoder())


@pytest.mark.parametrize("estimator", [pb.ReinMax(), pb.SampledSTE(), pb.ScoreFunction(), pb.Marginals()], ids=repr)
def test_what_needs_a_distribution_says_so_for_matchings(estimator: pb.Estimator) -> None:
    with pytest.raises(NotImplementedError, match="Matching"):
        estimator.objective(pb.Matching(), torch.zeros(1, 3, 3, requires_grad=True), lambda z: z[:, 0, 0])


@pytest.mark.parametrize("name", ARGMAX_ALONE)
def test_an_argmax_is_enough_for_matchings(name: str) -> None:
    torch.manual_seed(0)
    scores = torch.randn(4, 2, 3, dtype=torch.float64).requires_grad_()
    cost = torch.randn(2, 3, dtype=torch.float64)
    create(name).objective(pb.Matching(), scores, lambda z: 5 * (z * cost).sum((1, 2)).square()).sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.abs().sum() > 0
