"""What is wrong with the input is said: what was passed, what is needed, and which sentence it was."""

import numpy as np
import pytest
import torch

import pullback as pb
from cases import CATEGORICAL, OPERATIONS
from each import each

EACH = each("operation", OPERATIONS.values())


@EACH
@each("value", [torch.nan, torch.inf])
def test_a_bad_score_names_its_sentence(tree, dtype, operation, value):
    scores = tree.random(20, n=4, dtype=dtype)
    scores[17, 1, 2] = value
    scores[3, 3, 3] = value  # in the padding, where it does not matter
    structure = tree.whole(torch.tensor([4, 4, 4, 3] + [4] * 16))
    what = "NaN" if value != value else r"\+inf"
    with pytest.raises(ValueError, match=rf"sentence 17 of the batch \(length 4\) contains {what}"):
        operation(structure, scores)


def test_no_feasible_tree_names_its_sentence(tree, dtype):
    scores = tree.random(20, n=4, dtype=dtype)
    scores[18, :, 2] = -torch.inf  # word 2 has no head
    scores[3, :, 3] = -torch.inf  # in the padding
    structure = tree.whole(torch.tensor([4, 4, 4, 3] + [4] * 16))
    for operation in OPERATIONS.values():
        with pytest.raises(ValueError, match=r"sentence 18 of the batch \(length 4\) has no feasible tree"):
            operation(structure, scores)


def test_a_cycle_that_cannot_be_left_is_infeasible(tree, dtype):
    """Every word has a possible head, but words 0 and 1 can only be each other's."""
    scores = tree.random(2, n=3, dtype=dtype)
    scores[1] = -torch.inf
    scores[1, 0, 1] = scores[1, 1, 0] = scores[1, 2, 2] = 0.0
    for operation in OPERATIONS.values():
        with pytest.raises(ValueError, match=r"sentence 1 .* no feasible tree"):
            operation(tree.whole(), scores)


@EACH
def test_two_words_that_can_only_be_roots_need_multiroot(tree, dtype, operation):
    scores = tree.random(1, n=3, dtype=dtype)
    scores[0, 1:, 0] = scores[0, :2, 2] = scores[0, 2, 0] = -torch.inf  # 0 and 2 hang from the root alone
    if tree.multiroot:
        assert operation(tree.whole(), scores).isfinite().all()
    else:
        with pytest.raises(ValueError, match=r"sentence 0 .* no feasible tree"):
            operation(tree.whole(), scores)


@EACH
def test_only_crossing_arcs_are_left(tree, dtype, operation):
    scores = torch.full((1, 4, 4), -torch.inf, dtype=dtype, device=tree.device)
    for head, word in [(0, 0), (0, 2), (2, 3), (3, 1)]:  # 3 -> 1 crosses 0 -> 2
        scores[0, head, word] = 1.0
    if tree.projective:
        with pytest.raises(ValueError, match=r"sentence 0 .* no feasible tree"):
            operation(tree.whole(), scores)
    else:
        assert operation(tree.whole(), scores).isfinite().all()


@pytest.mark.parametrize("length", [-1, 5])
def test_a_length_out_of_range_names_its_sentence(tree, length):
    structure = tree.whole(torch.tensor([4, 2, length]))
    for operation in OPERATIONS.values():
        with pytest.raises(ValueError, match=rf"lengths\[2\] is {length}; scores of 4 words need lengths from 0 to 4"):
            operation(structure, tree.random(3, n=4))


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), (32, 20, 21)], ids=str)
def test_the_shape_of_scores(tree, shape):
    for operation in OPERATIONS.values():
        with pytest.raises(ValueError, match=r"scores has shape \[.*\]; a DependencyTree needs \[\.\.\., n, n\]"):
            operation(tree.whole(), torch.zeros(shape, device=tree.device))


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 2)], ids=str)
def test_the_shape_of_lengths(tree, shape):
    structure = tree.whole(torch.full(shape, 4))
    for operation in OPERATIONS.values():
        with pytest.raises(ValueError, match=r"lengths has shape \[.*\] and scores \[2, 4, 4\].* shape \[2\]"):
            operation(structure, tree.random(2, n=4))


@pytest.mark.parametrize("lengths", [torch.tensor([2.0]), torch.tensor(True), [1.5]], ids=["float", "bool", "list"])
def test_lengths_are_integers(lengths):
    with pytest.raises(TypeError, match=r"lengths have dtype torch\.\w+; they must be integers"):
        pb.DependencyTree(lengths)


@pytest.mark.parametrize("option", ["projective", "multiroot"])
@pytest.mark.parametrize("value", ["no", 1, None, torch.tensor(True)], ids=str)
def test_flags_are_booleans(option, value):
    with pytest.raises(TypeError, match=rf"{option} is .*; it must be True or False"):
        pb.DependencyTree(**{option: value})
    assert getattr(pb.DependencyTree(**{option: np.False_}), option) is False


@each("kind", [torch.int64, torch.int32, torch.bool])
def test_integer_scores(case, kind):
    scores = torch.ones(2, *case.shape(3), dtype=kind, device=case.device)
    for operation in case.operations.values():
        with pytest.raises(TypeError, match=rf"scores have dtype {kind}; .*scores\.float\(\)"):
            operation(case.whole(), scores)


@EACH
@pytest.mark.parametrize("shape", [(), (0,), (2, 0)], ids=str)
def test_the_shape_of_categorical_scores(operation, shape):
    with pytest.raises(ValueError, match=r"scores has shape \[.*\]; a Categorical needs \[\.\.\., K\] with K > 0"):
        operation(CATEGORICAL.whole(), torch.zeros(shape))


@pytest.mark.parametrize(
    ("value", "message"),
    [(torch.nan, "contains NaN"), (torch.inf, r"contains \+inf"), (-torch.inf, "forbids every class")],
    ids=["NaN", "+inf", "-inf"],
)
def test_bad_categorical_scores_name_their_example(dtype, value, message):
    scores = CATEGORICAL.random(3, 2, n=4, dtype=dtype)
    scores[2, 1, 1 if value != -torch.inf else slice(None)] = value
    for operation in OPERATIONS.values():
        with pytest.raises(ValueError, match=rf"scores\[2, 1\] {message}"):
            operation(CATEGORICAL.whole(), scores)


@each("operation", ["score", "log_prob"])
def test_a_structure_of_another_size(case, operation):
    scores, z = case.random(2, n=3), torch.zeros(2, *case.shape(4), device=case.device)
    with pytest.raises(ValueError, match=r"scores has shape \[2, 3.*\] and z \[2, 4.*\]"):
        getattr(case.whole(), operation)(scores, z)


@EACH
def test_without_checks_a_sentence_with_nan_does_not_spoil_its_neighbours(tree, operation):
    structure = pb.DependencyTree(projective=tree.projective, multiroot=tree.multiroot, validate=False)
    scores = tree.random(3, n=4)
    expected = operation(structure, scores)
    scores[1, 0, 1] = torch.nan
    assert torch.equal(operation(structure, scores)[[0, 2]], expected[[0, 2]])


def test_values_are_checked_on_the_cpu_by_default():
    scores = torch.full((2, 3, 3), torch.nan)
    for structure in (pb.Categorical(), pb.DependencyTree()):
        with pytest.raises(ValueError, match="contains NaN"):
            structure.argmax(scores)
