"""Ties break the same way every time, whatever else is in the batch, and never into something that is no structure."""

import pytest
import torch
from torch.testing import assert_close

import pullback as pb
from cases import DIFFERENTIABLE, OPERATIONS, value_and_gradient
from each import each
from oracles import assert_structures, brute_force, everything, mean


def tied(case, *batch, n, dtype, seed=0):
    """Scores of -1, 0 and 1: many structures are equally good."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-1, 2, (*batch, *case.shape(n)), generator=generator).to(case.device, dtype)


@each("n", [2, 5])
def test_equal_scores_give_a_structure(case, dtype, n):
    """All-zero scores are where peers return heads that form no tree."""
    for value in (0.0, -3.0, 1e6):
        z = case.whole().argmax(torch.full((2, *case.shape(n)), value, dtype=dtype, device=case.device))
        assert_structures(case, z)
        assert torch.equal(z[0], z[1])


@pytest.mark.parametrize("n", [1, 9, 16])
def test_equal_scores_of_long_sentences_give_a_tree(tree, n):
    for value in (0.0, 1e6):
        assert_structures(tree, tree.whole().argmax(torch.full((2, n, n), value, device=tree.device)))


@each("n", [2, 4])
def test_the_argmax_of_tied_scores_is_best(case, dtype, n):
    scores = tied(case, 20, n=n, dtype=dtype, seed=n)
    z = case.whole().argmax(scores)
    assert_structures(case, z)
    assert torch.equal(case.whole().score(scores, z).double().cpu(), brute_force(case, "best", scores))


@pytest.mark.parametrize("n", [2, 5])
def test_marginals_of_equal_scores_are_frequencies(gibbs_case, dtype, n):
    scores = torch.zeros(1, *gibbs_case.shape(n), dtype=dtype, device=gibbs_case.device)
    z = everything(gibbs_case, n)
    expected = mean(gibbs_case.own(z).softmax(0), z)[None].to(scores)
    assert_close(gibbs_case.whole().marginals(scores), expected)


def test_the_same_scores_give_the_same_result(case, dtype):
    scores = tied(case, 20, n=4, dtype=dtype)
    for name, operation in case.operations.items():
        assert torch.equal(operation(case.whole(), scores), operation(case.whole(), scores)), name


def assert_same(operation, found, expected):
    """Equal, but for the last bits of what is summed in another order; an argmax is equal."""
    tolerance = 0 if operation == "argmax" else 8 * torch.finfo(found.dtype).eps
    assert_close(found, expected, atol=tolerance, rtol=tolerance)


LENGTHS = [3, 6, 0, 1, 4, 2, 6, 5, 6, 6, 2, 4, 5, 3, 1, 6, 6, 4, 0, 5, 3]  # more than one group of 16 lanes


@pytest.mark.parametrize("operation", ["argmax", *DIFFERENTIABLE])
def test_the_order_of_the_batch_does_not_matter(tree, dtype, operation):
    scores, lengths = tied(tree, len(LENGTHS), n=6, dtype=dtype), torch.tensor(LENGTHS)
    order = torch.randperm(len(LENGTHS), generator=torch.Generator().manual_seed(0))
    found = OPERATIONS[operation](tree.whole(lengths[order]), scores[order])
    assert_same(operation, found, OPERATIONS[operation](tree.whole(lengths), scores)[order])


@pytest.mark.parametrize("operation", ["argmax", *DIFFERENTIABLE])
def test_the_rest_of_the_batch_does_not_matter(tree, dtype, operation):
    """A sentence alone, without its padding, gets what it gets in a batch."""
    scores, lengths = tied(tree, len(LENGTHS), n=6, dtype=dtype), torch.tensor(LENGTHS)
    together = OPERATIONS[operation](tree.whole(lengths), scores)
    for one, s, n in zip(together, scores, LENGTHS, strict=True):
        inside = one[:n, :n] if one.dim() else one
        assert_same(operation, OPERATIONS[operation](tree.whole(), s[:n, :n]), inside)


@pytest.mark.parametrize("operation", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_the_rest_of_the_batch_does_not_matter_to_gradients(tree, dtype, operation):
    """Also where the rest is so peaked that it may need another way of computing."""
    gentle, peaked = tree.random(3, n=5, dtype=dtype), tree.random(20, n=5, dtype=dtype, scale=1e4, seed=1)
    _, alone = value_and_gradient(lambda t, s: operation(t, s)[:3], tree.whole(), gentle)
    _, together = value_and_gradient(lambda t, s: operation(t, s)[:3], tree.whole(), torch.cat([gentle, peaked]))
    assert_same("gradient", together[:3], alone)
    assert not together[3:].any()


def test_options_belong_to_the_object(tree, dtype):
    """An object made later with other options changes nothing for one made earlier."""
    scores = tree.random(8, n=5, dtype=dtype, seed=2) + 3 * torch.eye(5, dtype=dtype, device=tree.device)
    structure = tree.whole()
    before = structure.argmax(scores)
    other = pb.DependencyTree(torch.ones(8, dtype=torch.long), not tree.projective, not tree.multiroot, validate=False)
    other.argmax(scores)
    assert torch.equal(structure.argmax(scores), before)
    assert repr(structure) == f"DependencyTree(projective={tree.projective}, multiroot={tree.multiroot})"


def test_a_single_root_is_exact_and_no_repair(tree):
    """The best tree with one root need not contain the best root of the best tree with several."""
    scores = tree.random(200, n=4, seed=3)
    z = tree.whole().argmax(scores)
    roots = z.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert (roots > 1).any() if tree.multiroot else (roots == 1).all()
    assert_close(tree.whole().score(scores, z).cpu(), brute_force(tree, "best", scores))
