"""A structure and an estimator as one module."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import pullback as pb
from pullback.nn import StructuredLayer


def test_training_and_evaluation_differ():
    layer, scores = StructuredLayer(pb.Subset(2), pb.SampledSTE()), torch.randn(50, 6)
    torch.manual_seed(0)
    assert not torch.equal(layer(scores), pb.Subset(2).argmax(scores))
    assert torch.equal(layer.eval()(scores), pb.Subset(2).argmax(scores))


def test_gradients_are_the_estimators():
    tree, estimator, scores = pb.DependencyTree(), pb.SPIGOT(0.3), torch.randn(3, 4, 4)
    weight, found = torch.randn(3, 4, 4), []
    for run in (StructuredLayer(tree, estimator), lambda s: estimator(tree, s)):
        leaf = scores.clone().requires_grad_()
        (run(leaf) * weight).sum().backward()
        found.append(leaf.grad)
    assert torch.equal(*found)


@pytest.mark.parametrize("lengths", [torch.tensor([4, 2]), [4, 2], torch.arange(4) < torch.tensor([[4], [2]])], ids=type)
def test_lengths_of_a_call(lengths):
    tree = pb.DependencyTree(multiroot=False)
    layer, scores = StructuredLayer(tree, pb.Marginals()), torch.randn(2, 4, 4)
    expected = pb.DependencyTree(torch.tensor([4, 2]), multiroot=False).marginals(scores)
    torch.testing.assert_close(layer(scores, lengths), expected)
    torch.testing.assert_close(layer(scores), tree.marginals(scores))
    torch.testing.assert_close(StructuredLayer(pb.StructureWrapper(tree), pb.Marginals())(scores, lengths), expected)
    assert tree.lengths is None


def test_state_is_that_of_the_estimator():
    layer = StructuredLayer(pb.Subset(2), pb.AdaptiveIMLE())
    assert layer.state_dict()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.state_dict().keys() == layer.state_dict().keys()
        assert repr(other) == repr(layer)
        assert "Subset(k=2)" in repr(other)


def test_compiles():
    layer, scores = StructuredLayer(pb.DependencyTree(), pb.Marginals()), torch.randn(2, 4, 4)
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend="aot_eager")(scores), layer(scores))


def test_mistakes_are_named():
    with pytest.raises(TypeError, match="was given SPIGOT and Subset; it needs a Structure and an Estimator"):
        StructuredLayer(pb.SPIGOT(), pb.Subset(1))
    with pytest.raises(TypeError, match=r"Categorical\(\) has no lengths"):
        StructuredLayer(pb.Categorical(), pb.Marginals())(torch.zeros(2, 3), [1, 2])
    with pytest.raises(TypeError, match=r"estimator\.objective"):
        StructuredLayer(pb.Categorical(), pb.SPIGOTCE())(torch.zeros(2, 3, requires_grad=True))
