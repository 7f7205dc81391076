"""A program of a user, as `mypy --strict` reads it: every public name that it takes has a type.

`make lint` checks this file; `assert_type` fails there if a call returns something else, or nothing that is known.
"""

from __future__ import annotations

from typing import Any, assert_type

import torch
from torch import Tensor

import pullback as pb
from pullback import losses, nn, parts, viz


class Pairs(pb.Structure):
    """A structure of one's own needs its argmax only."""

    event_dims = 1

    def argmax(self, scores: Tensor) -> Tensor:
        return torch.zeros_like(scores).scatter_(-1, scores.topk(2, -1).indices, 1.0)


class Steps(pb.DynamicProgram):
    """A recursion of one's own."""

    event_dims = 1

    def value(self, scores: Tensor, combine: Any) -> Tensor:
        total: Tensor = combine(scores, 1)
        return total


def downstream(z: Tensor) -> Tensor:
    return z.square().sum(-1)


def latent(scores: Tensor, estimator: pb.Estimator | None = None) -> Tensor:
    structure = pb.Subset(2)
    chosen = estimator or pb.SPIGOT(step_size=0.1)
    found = chosen.objective(structure, scores, downstream)
    assert_type(found, Tensor)
    prediction = chosen.predict(structure, scores, argmax=True)
    assert_type(prediction, Tensor)
    return found.mean()


def supervised(scores: Tensor, heads: Tensor) -> Tensor:
    tree = pb.DependencyTree(lengths=torch.tensor([3, 2]), projective=False)
    gold = tree.from_heads(heads)
    assert_type(gold, Tensor)
    assert_type(tree.contains(gold), Tensor)
    assert_type(tree.marginals(scores), Tensor)
    assert_type(tree.log_partition(scores), Tensor)
    assert_type(tree.sample(scores, torch.Generator()), Tensor)
    assert_type(tree.topk(scores, 3), pb.TopK)
    solution = tree.sparsemap_solution(scores)
    assert_type(solution, pb.SparseMAPSolution)
    assert_type(solution.gap, Tensor)
    loss = losses.Hinge()(tree, scores, target=gold)
    assert_type(loss, Tensor)
    return loss.mean() + losses.CrossEntropy()(tree, scores, target=gold).mean()


def tagging(emissions: Tensor, tags: Tensor, mask: Tensor) -> list[list[int]]:
    crf = nn.CRF(5, batch_first=True)
    assert_type(crf.forward(emissions, tags, mask=mask, reduction="mean"), Tensor)  # of a call, PyTorch says `Any`
    layer = pb.nn.StructuredLayer(pb.LinearChain(), pb.SparseMAP())
    layer.train()
    best = crf.decode(emissions, mask)
    assert_type(best, list[list[int]])
    assert_type(crf.decode(emissions, mask, top=3), list[list[list[int]]])
    assert_type(crf.marginals(emissions, mask), Tensor)
    assert_type(crf.confidence(emissions, [[(0, 2, 1)]], mask), list[Tensor])
    return best


def written(z: Tensor) -> list[tuple[int, int, int]]:
    """How deep such lists are nested depends on the batch, so their elements are `Any`, as those of `Tensor.tolist`."""
    assert_type(pb.Alignment().path(z), list[Any])
    assert_type(pb.BinaryTree().brackets(z), list[Any])
    assert_type(pb.LinearChain().tags(z), Tensor)
    assert_type(pb.Subset(2).indices(z), Tensor)
    assert_type(pb.Matching().columns(z), Tensor)
    segments: list[tuple[int, int, int]] = pb.Segmentation().segments(z)
    return segments


def pieces() -> list[pb.Estimator]:
    return [
        pb.PulledBack(loss=losses.Perceptron(), start=parts.FromArgmax(), update=parts.Projected(step_size=1.0), steps=2),
        pb.IMLE(step_size=1.0, noise=parts.SumOfGamma(2), samples=3),
        pb.ScoreFunction(baseline=parts.LeaveOneOut(2)),
        pb.Standardized(pb.STEIdentity()),
    ]


def tools(scores: Tensor) -> str:
    found = pb.diagnose(pb.Marginals(), pb.Categorical(), scores, downstream, draws=10)
    assert_type(found, pb.Diagnosis)
    return viz.tree_text(["a", "fun", "film"], [2, 2, -1])
