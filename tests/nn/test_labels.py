"""Labelled trees, by enumeration of trees and labels."""

from __future__ import annotations

import itertools

import pytest
import torch

import pullback as pb
from pullback.nn import join_labels, split_labels

LABELS = 2
TREES = [pb.DependencyTree(), pb.DependencyTree(projective=False, multiroot=False), pb.BinaryTree()]


def _labelled(tree, n):
    """All labelled trees, `[S, n, n, L]`."""
    found = []
    for z in tree.enumerate(n):
        places = z.nonzero().tolist()
        for labels in itertools.product(range(LABELS), repeat=len(places)):
            one = torch.zeros(n, n, LABELS, dtype=torch.float64)
            for (i, j), label in zip(places, labels, strict=True):
                one[i, j, label] = 1
            found.append(one)
    return torch.stack(found)


@pytest.mark.parametrize("tree", TREES, ids=repr)
@pytest.mark.parametrize("forbidden", [False, True])
def test_labelled_inference_is_that_of_the_joint_set(tree, forbidden):
    torch.manual_seed(0)
    scores = torch.randn(3, 3, LABELS, dtype=torch.float64)
    if forbidden:
        scores[0, 1, 0] = scores[1, 0, 1] = scores[1, 0, 0] = -torch.inf
        scores[0, 1, 1] = 9.0
    everything = _labelled(tree, 3)
    totals = torch.where(everything > 0, scores, 0.0).flatten(1).sum(1)
    leaf = scores.clone().requires_grad_()
    joined = join_labels(leaf)
    torch.testing.assert_close(tree.log_partition(joined), totals.logsumexp(0))
    marginals = (totals.softmax(0)[:, None, None, None] * everything).sum(0)
    torch.testing.assert_close(split_labels(tree.marginals(joined), leaf), marginals)
    (slope,) = torch.autograd.grad(tree.log_partition(joined), leaf)
    torch.testing.assert_close(slope, marginals)
    best = split_labels(tree.argmax(join_labels(scores, best=True)), scores, best=True)
    assert torch.equal(best, everything[totals.argmax()])


def test_padding_may_hold_anything():
    tree, scores = pb.DependencyTree([3, 2]), torch.randn(2, 3, 3, 4)
    padding = ~tree.allowed(torch.zeros(2, 3, 3))
    for garbage in (torch.nan, torch.inf, -torch.inf, -1e30):
        leaf = torch.where(padding[..., None], garbage, scores).requires_grad_()
        mu = split_labels(tree.marginals(join_labels(leaf)), leaf)
        assert not mu[padding].any()
        torch.testing.assert_close(mu[~padding], split_labels(tree.marginals(join_labels(scores)), scores)[~padding])
        (slope,) = torch.autograd.grad((mu * torch.randn_like(mu)).sum() + tree.log_partition(join_labels(leaf)).sum(), leaf)
        assert slope.isfinite().all()
        assert not slope[padding].any()


def test_gradients():
    tree, scores = pb.BinaryTree(), torch.randn(3, 3, LABELS, dtype=torch.float64, requires_grad=True)
    part = torch.ones(3, 3, dtype=torch.bool).triu()[..., None]
    torch.autograd.gradcheck(lambda s: split_labels(tree.marginals(join_labels(s)), s)[part.expand_as(s)], scores)


def test_supervision_of_trees_and_labels():
    """The likelihood of a labelled tree is that of the tree, times that of its labels given the tree."""
    torch.manual_seed(1)
    tree = pb.DependencyTree()
    scores, everything = torch.randn(3, 3, LABELS, dtype=torch.float64), _labelled(tree, 3)
    gold = everything[5]
    totals = torch.where(everything > 0, scores, 0.0).flatten(1).sum(1)
    of_tree = tree.log_prob(join_labels(scores), gold.sum(-1))
    of_labels = (gold * scores.log_softmax(-1)).sum()
    torch.testing.assert_close(of_tree + of_labels, totals.log_softmax(0)[5])


def test_mistakes_are_named():
    scores = torch.zeros(4, 4, 2)
    with pytest.raises(TypeError, match=r"scores is a list; join_labels needs a torch\.Tensor"):
        join_labels(scores.tolist())
    with pytest.raises(ValueError, match=r"scores has shape \[4, 4, 0\]; join_labels needs \[\.\.\., \*parts, L\] with L > 0"):
        join_labels(scores[..., :0])
    for z in (torch.zeros(3, 3), scores):
        with pytest.raises(ValueError, match=r"z has shape .* and scores \[4, 4, 2\]; split_labels needs"):
            split_labels(z, scores)
    assert split_labels(torch.zeros(7, 4, 4), scores).shape == (7, 4, 4, 2)  # samples of one sentence
