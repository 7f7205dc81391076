"""Padding may hold anything: results and gradients there are exactly zero, and those of the words do not change."""

import pytest
import torch
from torch.testing import assert_close

from cases import DIFFERENTIABLE, OPERATIONS, PER_PART, value_and_gradient
from oracles import assert_structures, brute_force, mask_of

LENGTHS = [3, 5, 0, 1, 4, 2]
GARBAGE = [torch.nan, torch.inf, -torch.inf, 1e30]


def padding(device):
    outside = torch.arange(6, device=device) >= torch.tensor(LENGTHS, device=device)[:, None]
    return outside[:, :, None] | outside[:, None, :]


def structure_and_scores(tree, dtype):
    return tree.whole(torch.tensor(LENGTHS)), tree.random(len(LENGTHS), n=6, dtype=dtype, seed=1)


HYPERGRAPHS = ("at most", "knapsack", "segmentation", "semi-Markov", "path", "grid", "own hops", "own brackets")


def assert_same(entry, found, clean, name):
    """Equal; but sums over hypergraphs may be found in another kind of number, which changes their last bits."""
    if entry.name not in HYPERGRAPHS or name in ("argmax", "sparsemap"):
        assert torch.equal(found, clean), name
    else:
        torch.testing.assert_close(found, clean, msg=lambda text: f"{name}: {text}")


def test_padding_changes_nothing(entry, dtype):
    structure, mask, scores = entry.structure(), mask_of(entry), entry.scores(seed=1).to(dtype)
    for name, operation in entry.operations.items():
        clean = operation(structure, scores)
        for garbage in GARBAGE:
            found = operation(structure, torch.where(mask, scores, garbage))
            assert_same(entry, found, clean, name)
            if name in PER_PART:
                assert not found[~mask].any(), name


def test_gradients_in_the_padding_are_exactly_zero(entry, dtype):
    structure, mask, scores = entry.structure(), mask_of(entry), entry.scores(seed=1).to(dtype)
    for name, operation in entry.differentiable.items():
        _, clean = value_and_gradient(operation, structure, scores)
        for garbage in GARBAGE:
            _, found = value_and_gradient(operation, structure, torch.where(mask, scores, garbage))
            assert_same(entry, found, clean, name)
            assert not found[~mask].any(), name


def test_incoming_gradients_in_the_padding_are_ignored(entry, dtype):
    mask, incoming = mask_of(entry), entry.scores(seed=2).to(dtype)
    for name in entry.differentiable.keys() & {"marginals", "sparsemap"}:
        leaf = entry.scores(seed=1).to(dtype).requires_grad_()
        result = DIFFERENTIABLE[name](entry.structure(), leaf)
        (clean,) = torch.autograd.grad(result, leaf, incoming, retain_graph=True)
        for garbage in GARBAGE:
            weights = torch.where(mask, incoming, garbage)
            (found,) = torch.autograd.grad(result, leaf, weights, retain_graph=True)
            assert_same(entry, found, clean, name)


def test_score_ignores_the_padding(tree, dtype):
    structure, scores = structure_and_scores(tree, dtype)
    z = structure.argmax(scores).requires_grad_()
    padded = scores.masked_fill(padding(tree.device), torch.nan).requires_grad_()
    score = structure.score(padded, z)
    assert torch.equal(score, structure.score(scores, z))
    score.sum().backward()
    assert torch.equal(padded.grad, z)
    assert torch.equal(z.grad, scores.masked_fill(padding(tree.device), 0))


@pytest.mark.parametrize("operation", ["marginals", "log_partition", "entropy"])
def test_a_ragged_batch_is_right(tree, dtype, operation):
    structure, scores = structure_and_scores(tree, dtype)
    padded = scores.masked_fill(padding(tree.device), torch.nan)
    expected = brute_force(tree, operation, scores, LENGTHS).to(scores)
    assert_close(getattr(structure, operation)(padded), expected, atol=2e-5, rtol=2e-5)


def test_the_argmax_of_a_ragged_batch_is_right(tree, dtype):
    structure, scores = structure_and_scores(tree, dtype)
    padded = scores.masked_fill(padding(tree.device), torch.nan)
    z = structure.argmax(padded)
    assert_structures(tree, z, LENGTHS)
    assert_close(structure.score(padded, z), brute_force(tree, "best", scores, LENGTHS).to(scores))


def test_allowed_is_neither_padding_nor_forbidden(tree, dtype):
    structure, scores = structure_and_scores(tree, dtype)
    scores[0, 0, 1] = -torch.inf
    allowed = structure.allowed(scores.masked_fill(padding(tree.device), torch.nan))
    assert not allowed[0, 0, 1]
    assert torch.equal(allowed, ~padding(tree.device) & (scores != -torch.inf))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_an_empty_sentence_has_one_empty_tree(tree, dtype, n):
    """Its score, log-partition and entropy are zero."""
    scores = torch.full((2, n, n), torch.nan, dtype=dtype, device=tree.device)
    structure = tree.whole(torch.zeros(2, dtype=torch.long))
    for name, operation in OPERATIONS.items():
        assert not operation(structure, scores).any(), name
        if name in DIFFERENTIABLE:
            assert not value_and_gradient(operation, structure, scores)[1].any(), name


def test_a_sentence_of_one_word_has_one_tree(tree, dtype):
    scores = torch.tensor([[[3.0]]], dtype=dtype, device=tree.device)
    for name, operation in OPERATIONS.items():
        expected = 3.0 if name == "log_partition" else float(name in PER_PART)
        assert operation(tree.whole(), scores).item() == expected, name
