"""Gold tags that the constraints forbid, and spans of one kind."""

from __future__ import annotations

import itertools

import pytest
import torch

from pullback.nn import CRF, allowed_transitions

BIO = allowed_transitions("BIO", ["O", "B-P", "I-P", "B-L", "I-L"])
BIOES = allowed_transitions("BIOES", ["O", "B", "I", "E", "S"])


@pytest.mark.parametrize(
    ("constraints", "tags", "message"),
    [
        (BIO, [[0, 1, 2], [2, 2, 0]], "sentence 1 begin with I-P, which the constraints forbid"),
        (BIO, [[-100, 2, 0]], "sentence 0 begin with I-P"),
        (BIO, [[0, 2, 0]], "sentence 0 have I-P after O"),
        (BIOES, [[0, 0, 1]], "sentence 0 end with B"),
        (BIOES, [[0, 1, -100]], "sentence 0 end with B"),
    ],
)
def test_forbidden_tags_are_named(constraints, tags, message) -> None:
    with pytest.raises(ValueError, match=message):
        CRF(5, True, constraints)(torch.randn(len(tags), 3, 5), torch.tensor(tags))


def test_allowed_tags_are_no_mistake() -> None:
    tags = torch.tensor([[1, 3, 0], [0, -100, -100], [-100, -100, -100], [-100, 4, -100]])
    assert CRF(5, True, BIOES)(torch.randn(4, 3, 5), tags).isfinite()


@pytest.mark.parametrize(
    ("scheme", "tags", "span", "spellings"),
    [
        ("BMES", "BMES", (0, 2), ["BE"]),
        ("BMES", "BMES", (0, 3), ["BME"]),
        ("BMES", "BMES", (1, 2), ["S"]),
        ("BIO", "OBI", (0, 2), ["BI"]),
    ],
)
def test_one_kind_of_span(scheme: str, tags: str, span: tuple[int, int], spellings: list[str]) -> None:
    """Its label is the empty string. The oracle sums over all sequences of tags."""
    constraints = allowed_transitions(scheme, list(tags))
    crf, emissions = CRF(len(tags), True, constraints), torch.randn(1, 4, len(tags))
    total = found = 0.0
    for sequence in itertools.product(range(len(tags)), repeat=4):
        word = "".join(tags[tag] for tag in sequence)
        follows = [constraints.transitions[pair] for pair in itertools.pairwise(sequence)]
        if not (constraints.start[sequence[0]] and constraints.end[sequence[-1]] and all(follows)):
            continue
        weight = crf(emissions, torch.tensor([sequence])).exp().item()
        total += weight
        ends = scheme != "BIO" or word[span[1] : span[1] + 1] != "I"
        found += weight if word[slice(*span)] in spellings and ends else 0.0
    (confidence,) = crf.confidence(emissions, [[(*span, "")]])
    torch.testing.assert_close(confidence, torch.tensor([found / total]), atol=1e-4, rtol=1e-4)


def test_labels_that_are_none() -> None:
    crf = CRF(4, True, allowed_transitions("BMES", list("BMES")))
    with pytest.raises(ValueError, match="there is no label 'PER'; the labels are ''"):
        crf.confidence(torch.randn(1, 3, 4), [[(0, 2, "PER")]])
    with pytest.raises(ValueError, match="there is no label 'X'; the labels are 'L', 'P'"):
        CRF(5, True, BIO).confidence(torch.randn(1, 3, 5), [[(0, 2, "X")]])


@pytest.mark.parametrize("reduction", ["mean", "token_mean"])
def test_a_mean_of_nothing_is_not_a_number(reduction: str) -> None:
    """As those of PyTorch's losses."""
    crf, tags = CRF(3, True), torch.full((0 if reduction == "mean" else 2, 4), -100)
    ours = crf(torch.zeros(*tags.shape, 3), tags, reduction=reduction)
    theirs = torch.nn.functional.cross_entropy(torch.zeros(*tags.shape, 3).flatten(0, 1), tags.flatten())
    assert ours.isnan()
    assert theirs.isnan()
