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
    for structure, scores in ((pb.Categorical(), torch.zeros(2, 3)), (pb.ShortestPath.grid(3, 3), torch.zeros(2, 3, 3))):
        with pytest.raises(TypeError, match=r"has no lengths; call the layer without them"):
            StructuredLayer(structure, pb.Marginals())(scores, [1, 2])
    with pytest.raises(ValueError, match=r"lengths is a mask \[\.\.\., 4\], and there are 3 positions"):
        StructuredLayer(pb.DependencyTree(), pb.Marginals())(torch.zeros(2, 3, 3), torch.ones(2, 4, dtype=torch.bool))
    layer = StructuredLayer(pb.DependencyTree(torch.ones(2, 4, dtype=torch.bool)), pb.Marginals())
    assert layer(torch.zeros(2, 3, 3), [3, 2]).shape == (2, 3, 3)  # whose own mask does not matter then
    with pytest.raises(TypeError, match=r"estimator\.objective"):
        StructuredLayer(pb.Categorical(), pb.SPIGOTCE())(torch.zeros(2, 3, requires_grad=True))


def _with_weights(lengths=None) -> StructuredLayer:
    torch.manual_seed(0)
    transitions, start = (torch.nn.Parameter(torch.randn(shape)) for shape in ((3, 3), (3,)))
    return StructuredLayer(pb.FactoredChain(transitions, start, lengths=lengths), pb.Marginals())


def test_parameters_of_the_structure_are_the_layers():
    layer, scores, weight = _with_weights(), torch.randn(2, 4, 3), torch.randn(2, 4, 3)
    assert set(layer.state_dict()) == {"weights.transitions", "weights.start"}
    (layer(scores, [4, 2]) * weight).sum().backward()
    assert all(x.grad.abs().sum() > 0 for x in layer.parameters())
    torch.optim.SGD(layer.parameters(), lr=0.5).step()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), _with_weights()):
        other.load_state_dict(layer.state_dict())
        torch.testing.assert_close(other(scores), layer(scores))
        torch.testing.assert_close(other.double()(scores.double()), layer(scores).double())
        with torch.no_grad():
            next(other.parameters()).zero_()
        assert not torch.allclose(other(scores.double()).float(), layer(scores))  # each has its own


def test_parameters_that_are_replaced():
    layer, scores = _with_weights(), torch.randn(2, 4, 3)
    weights = {name: torch.zeros_like(x) for name, x in layer.named_parameters()}
    torch.testing.assert_close(torch.func.functional_call(layer, weights, (scores,)), scores.softmax(-1))
    layer.load_state_dict(weights, assign=True)
    torch.testing.assert_close(layer(scores), scores.softmax(-1))
    wrapped = StructuredLayer(pb.StructureWrapper(_with_weights().structure), pb.Marginals())
    wrapped.load_state_dict(weights)
    torch.testing.assert_close(wrapped(scores, [4, 4]), scores.softmax(-1))


def test_distributed_data_parallel(tmp_path):
    """One process is enough to see that the structure's parameters take part."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        layer, scores, weight = _with_weights(), torch.randn(2, 4, 3), torch.randn(2, 4, 3)
        found = torch.nn.parallel.DistributedDataParallel(layer)(scores)
        torch.testing.assert_close(found, layer(scores))
        (found * weight).sum().backward()
        assert all(x.grad.abs().sum() > 0 for x in layer.parameters())
    finally:
        torch.distributed.destroy_process_group()


def test_layers_with_parameters_compile():
    layer, scores = _with_weights(), torch.randn(2, 4, 3)
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend="aot_eager")(scores), layer(scores))
