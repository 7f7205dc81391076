"""Errors of the structures say what is wrong: in the name of the operation, the argument and the example."""

from __future__ import annotations

import pytest
import torch

import pullback as pb

INFEASIBLE = [
    (pb.Subset(torch.tensor([2, 4])), (2, 3), r"example 1 of the batch \(length 3, k 4\).* k is larger than the number"),
    (pb.Matching(), (2, 3, 2), r"example 0 .* more rows than columns"),
    (pb.Alignment(moves="forward"), (2, 3, 2), r"example 0 .* more rows than columns"),
    (pb.Alignment([2, 0]), (2, 3, 2), r"example 1 .* only one of the two sequences is empty"),
    (pb.Segmentation(), (2, 3, 0, 2), r"sequence 0 .* W or C is 0"),
]


@pytest.mark.parametrize(("structure", "shape", "message"), INFEASIBLE)
def test_infeasible_examples_say_why(structure, shape, message):
    with pytest.raises(ValueError, match=message):
        structure.argmax(torch.zeros(shape))


@pytest.mark.parametrize("operation", ["log_partition", "marginals", "entropy", "log_prob", "kl", "sample"])
def test_matchings_refuse_sums_by_name(operation):
    scores = torch.zeros(2, 3, 3)
    arguments = [scores, scores] if operation in ("log_prob", "kl") else [scores]
    with pytest.raises(NotImplementedError, match=f"Matching has no `{operation}`"):
        getattr(pb.Matching(), operation)(*arguments)


@pytest.mark.parametrize("operation", ["kl", "log_prob", "score"])
def test_both_arguments_are_tensors(operation):
    scores = torch.zeros(2, 4)
    for arguments in ((scores.tolist(), scores), (scores, scores.numpy())):
        with pytest.raises(TypeError, match=r"torch\.as_tensor"):
            getattr(pb.Subset(2), operation)(*arguments)


def test_an_empty_batch_has_an_empty_list_of_lengths():
    assert pb.LinearChain([]).argmax(torch.zeros(0, 4, 2, 2)).shape == (0, 4, 2, 2)
    assert pb.Subset([], []).marginals(torch.zeros(0, 4)).shape == (0, 4)


def test_none_is_no_scores_either_after_scores_that_are_gone():
    structure = pb.Categorical()
    structure.argmax(torch.zeros(2, 3))
    with pytest.raises(TypeError, match=r"scores is a NoneType; .*torch\.as_tensor"):
        structure.argmax(None)
    with pytest.raises(TypeError, match=r"torch\.as_tensor"):
        structure.log_prob(torch.zeros(2, 3), [[1, 0, 0], [0, 1, 0]])
