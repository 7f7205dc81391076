"""One declaration makes a family: operators with every derivative, whatever its sizes and options; backends may be partial."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import pullback as pb
from cases import ENTRIES
from pullback.inference.front import checks
from pullback.inference.front.family import STANDARD, Family, Nouns, backend
from pullback.inference.front.layout import Layout, Size

FAMILIES = {entry.structure().family.name: entry.structure().family for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_backend_without_files_is_the_reference(entry):
    scores = entry.scores()
    with backend("reference"):
        expected = entry.structure().argmax(scores)
    with backend("nothing"):
        assert torch.equal(entry.structure().argmax(scores), expected)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_every_operation_has_an_implementation(family, name):
    options = tuple({bool: True, str: "any", int: 2}[kind] for kind in family.options.values())
    for operation in family.operations:
        assert callable(family.implementation(operation, name, options if family.operations[operation].sized else ()))


@pytest.fixture(scope="module")
def pairs():
    """One item of n and one of m, with no more than this: the family's file is this test's."""
    layout = Layout("Pairs", "n, m", sizes=(Size("lengths", "n"), Size("other_lengths", "m")))
    return Family("test_pairs", layout, folder="test_pairs", nouns=Nouns("case", "pair", "cell"), operations=STANDARD)


def value(scores: Tensor, lengths: Tensor, other_lengths: Tensor, combine) -> Tensor:
    return combine(scores.flatten(1), 1)


@pytest.fixture
def run(pairs, monkeypatch):
    """The operations of pairs, by the recursion above."""
    from pullback.inference.engine.recursion import operations

    names = ("argmax", "log_partition", "marginals", "marginals_vjp", "entropy", "entropy_gradient", "sample")
    functions = dict(zip(names, operations(value, pairs.layout), strict=True))
    monkeypatch.setattr(pairs, "function", lambda operation, *rest: functions[operation])
    return pairs


SIZES = torch.tensor([2, 3, 1]), torch.tensor([4, 1, 2])


def test_a_recursion_is_a_structure(run):
    scores = torch.randn(3, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    leaf = scores.clone().requires_grad_()
    mu, nats = run.marginals(leaf, *SIZES, True), run.entropy(leaf, *SIZES, True)
    for example, (n, m) in enumerate(zip(*SIZES, strict=True)):
        p = scores[example, :n, :m].flatten().softmax(0)
        assert_close(mu[example, :n, :m].flatten(), p)
        assert_close(nats[example], -(p * p.log()).sum())
        assert run.argmax(scores, *SIZES, True)[example, :n, :m].flatten().argmax() == p.argmax()
    assert_close(mu.detach().sum((1, 2)), torch.ones(3, dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda s: run.marginals(s, *SIZES, True), leaf, check_forward_ad=True)
    assert torch.autograd.gradcheck(lambda s: run.entropy(s, *SIZES, True), leaf, check_forward_ad=True)
    torch.library.opcheck(run.log_partition, (leaf, *SIZES, True))


def test_errors_name_the_example_and_its_sizes(run):
    scores = torch.zeros(3, 3, 4)
    with pytest.raises(ValueError, match=r"other_lengths\[1\] is 5; scores of 4 positions need other_lengths from 0 to 4"):
        run.argmax(scores, SIZES[0], torch.tensor([4, 5, 2]), True)
    scores[2, 0, 1] = torch.inf
    with pytest.raises(ValueError, match=r"case 2 of the batch \(length 1, other_length 2\) contains \+inf; .* forbid a cell"):
        run.marginals(scores, *SIZES, True)
    with pytest.raises(ValueError, match=r"case 1 of the batch \(length 0, other_length 1\) has no feasible pair"):
        run.sample(torch.zeros(3, 3, 4), torch.tensor([2, 0, 1]), SIZES[1], torch.zeros(3, dtype=torch.long), True)


def test_the_status_of_values_and_sizes():
    layout = pb.DependencyTree.family.layout
    scores, lengths = torch.zeros(5, 2, 2), torch.tensor([2, 2, 1, 3, -1])
    scores[0, 1, 1], scores[1, 0, 1], scores[2, 1, 1] = torch.nan, torch.inf, torch.nan
    assert layout.status(scores, (lengths,)).tolist() == [
        checks.NAN, checks.INFINITE, checks.OK, checks.BAD_SIZE, checks.BAD_SIZE,
    ]  # fmt: skip


def test_a_size_without_a_default_is_needed():
    with pytest.raises((ValueError, TypeError), match="k"):
        pb.Subset(None).argmax(torch.zeros(3))
