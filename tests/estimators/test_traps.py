"""Mistakes that would train in silence: losses that do not depend on z, an argmax of a wrong shape, samples by position."""

from __future__ import annotations

import warnings

import pytest
import torch

import pullback as pb
from cases import ENTRIES as STRUCTURES
from cases import Entry as Case
from each import each
from oracles import mask_of
from pullback.estimators import checks
from pullback.estimators.registry import ENTRIES, Entry

NEEDS_GRADIENT = [e for e in ENTRIES if not e.name.startswith("sfe") and e.name != "sparse-expectation"]
LINEAR = torch.nn.Linear(3, 1)
BLIND = {
    "argmax": lambda z: LINEAR(torch.nn.functional.one_hot(z.argmax(-1), 3).float()).squeeze(-1),
    "detach": lambda z: LINEAR(z.detach()).squeeze(-1),
    "ignores": lambda z: LINEAR(torch.ones(z.shape)).squeeze(-1),
}


@pytest.fixture(autouse=True)
def forgotten() -> None:
    checks._looked_at.clear()


def _objective(entry: Entry, downstream) -> None:
    scores = torch.randn(4, 3, requires_grad=True)
    losses = entry.make().objective(pb.Categorical(), scores, downstream)
    if losses.requires_grad:
        losses.sum().backward()


@each("blind", list(BLIND))
@pytest.mark.parametrize("entry", NEEDS_GRADIENT, ids=lambda entry: entry.name)
def test_losses_that_do_not_depend_on_z(entry: Entry, blind: str) -> None:
    with pytest.warns(pb.UnusedStructureWarning, match=r"do not depend on z.*ScoreFunction\(\)"):
        _objective(entry, BLIND[blind])


@pytest.mark.parametrize("entry", NEEDS_GRADIENT, ids=lambda entry: entry.name)
def test_losses_without_any_gradient(entry: Entry) -> None:
    """An error of estimators that call the decoder again, a warning of the others."""
    with (
        pytest.warns(pb.UnusedStructureWarning)
        if entry.name not in ("spigot-ce", "spigot-eg")
        else pytest.raises(RuntimeError, match=r"without a gradient.*ScoreFunction")
    ):
        _objective(entry, lambda z: z.detach().sum(-1))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_no_warning_where_all_is_well(entry: Entry) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pb.UnusedStructureWarning)
        for _ in range(2):
            _objective(entry, lambda z: LINEAR(z).squeeze(-1).square())
        if entry not in NEEDS_GRADIENT:
            _objective(entry, BLIND["argmax"])


def test_one_warning_for_a_training_loop() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for weight in torch.randn(3, 3):

            def downstream(z, weight=weight):
                return z.detach() @ weight

            pb.STEIdentity().objective(pb.Categorical(), torch.randn(2, 3, requires_grad=True), downstream)
    assert len([each for each in caught if each.category is pb.UnusedStructureWarning]) == 1


class Wrong(pb.Structure):
    """Its argmax returns indices, for which it is a beginner's mistake."""

    def argmax(self, scores):
        return scores.argmax(-1)

    def sample(self, scores, generator=None):
        return torch.zeros_like(scores)

    def log_partition(self, scores):
        return scores.logsumexp(-1)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.only is None and "argmax" in e.inference], ids=lambda e: e.name)
def test_a_wrong_argmax_is_reported_by_every_estimator(entry: Entry) -> None:
    with pytest.raises(ValueError, match=r"Wrong\.argmax returned \[.*\] for scores of shape \[.*\]; it must return"):
        entry.make().objective(Wrong(), torch.randn(2, 3, requires_grad=True), lambda z: z.sum(-1))


def test_a_wrong_argmax_is_reported_by_operations() -> None:
    for operation in (Wrong().argmax, Wrong().sparsemap, Wrong().contains, lambda s: Wrong().topk(s, 2)):
        with pytest.raises(ValueError, match=r"Wrong\.argmax returned \[2\] for scores of shape \[2, 3\]"):
            operation(torch.randn(2, 3))


@pytest.mark.parametrize("case", [case for case in STRUCTURES if case.gibbs], ids=lambda case: case.name)
def test_samples(case: Case) -> None:
    structure, scores = case.structure(), torch.where(mask_of(case), case.scores(), torch.nan)
    with pytest.raises(TypeError, match=r"generator is 10; it must be a torch.Generator.*pass samples=10"):
        structure.sample(scores, 10)
    found = structure.sample(scores, torch.Generator().manual_seed(3), samples=200)
    assert found.shape == (200, *scores.shape)
    assert structure.contains(found).all()
    repeated = structure.sample(scores.expand(200, *scores.shape), torch.Generator().manual_seed(3))
    assert torch.equal(found, repeated)
    assert pb.StructureWrapper(structure).sample(scores, samples=0).shape == (0, *scores.shape)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match=r"samples is .*; it must be an integer of at least 0"):
            structure.sample(scores, samples=wrong)


@pytest.mark.parametrize("estimator", [pb.SPIGOTCE(steps=3), pb.SPIGOTEG(steps=3), pb.SPIGOT(steps=3)], ids=repr)
def test_one_warning_for_several_inner_steps(estimator) -> None:
    scores = torch.randn(4, 3, requires_grad=True)
    with pytest.warns(pb.UnusedStructureWarning) as caught:
        estimator.objective(pb.Categorical(), scores, BLIND["argmax"]).sum().backward()
    assert len(caught) == 1
