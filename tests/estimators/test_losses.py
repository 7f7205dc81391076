"""The intermediate losses, against sums and maxima over all structures."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from cases import ENTRIES
from cases import Entry as Padded
from each import each
from estimators.worlds import World
from oracles import mask_of, poisoned

LOSSES = [pb.losses.Perceptron(), pb.losses.CrossEntropy(), pb.losses.SparseMAPLoss()]
CASES = {
    "categorical": (pb.Categorical(), (5,), 5),
    "projective": (pb.DependencyTree(), (3, 3), 3),
    "nonprojective": (pb.DependencyTree(projective=False, multiroot=False), (3, 3), 3),
}


@pytest.fixture(params=CASES)
def small(request: pytest.FixtureRequest) -> tuple[pb.Structure, Tensor, Tensor, Tensor]:
    """A structure, scores `[B, *parts]`, targets inside the polytope, and all structures."""
    structure, shape, size = CASES[request.param]
    generator = torch.Generator().manual_seed(0)
    every = structure.enumerate(size).double()
    scores = torch.randn(4, *shape, dtype=torch.float64, generator=generator)
    p = torch.rand(4, len(every), dtype=torch.float64, generator=generator).softmax(-1)
    return structure, scores, torch.einsum("bs,s...->b...", p, every), every


def _dots(scores: Tensor, every: Tensor) -> Tensor:
    return torch.einsum("bk,sk->bs", scores.flatten(1), every.flatten(1))


def test_perceptron(small: tuple[pb.Structure, Tensor, Tensor, Tensor]) -> None:
    structure, scores, target, every = small
    expected = _dots(scores, every).amax(-1) - (scores * target).flatten(1).sum(1)
    torch.testing.assert_close(pb.losses.Perceptron()(structure, scores, target), expected)


def test_cross_entropy(small: tuple[pb.Structure, Tensor, Tensor, Tensor]) -> None:
    structure, scores, target, every = small
    expected = _dots(scores, every).logsumexp(-1) - (scores * target).flatten(1).sum(1)
    torch.testing.assert_close(pb.losses.CrossEntropy()(structure, scores, target), expected)


def test_cross_entropy_of_a_structure_is_its_negative_log_likelihood(
    small: tuple[pb.Structure, Tensor, Tensor, Tensor],
) -> None:
    structure, scores, _, every = small
    gold = every[torch.arange(4) % len(every)]
    expected = -_dots(scores, every).log_softmax(-1)[torch.arange(4), torch.arange(4) % len(every)]
    torch.testing.assert_close(pb.losses.CrossEntropy()(structure, scores, gold), expected)


def test_sparsemap_loss_is_half_the_gain_in_squared_distance(
    small: tuple[pb.Structure, Tensor, Tensor, Tensor],
) -> None:
    """<s, m> - ||m||^2 / 2 is -||m - s||^2 / 2 up to a constant."""
    structure, scores, target, _ = small
    best = structure.sparsemap(scores)
    distances = [(point - scores).square().flatten(1).sum(1) for point in (target, best)]
    torch.testing.assert_close(pb.losses.SparseMAPLoss()(structure, scores, target), (distances[0] - distances[1]) / 2)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_by_finite_differences(
    small: tuple[pb.Structure, Tensor, Tensor, Tensor], loss: pb.losses.Perceptron
) -> None:
    structure, scores, target, _ = small
    leaf = scores.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(structure, s, target), leaf)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_not_negative_inside_the_polytope(
    small: tuple[pb.Structure, Tensor, Tensor, Tensor], loss: pb.losses.Perceptron
) -> None:
    structure, scores, target, _ = small
    assert (loss(structure, scores, target) >= 0).all()


def test_zero_where_the_prediction_is_the_target(small: tuple[pb.Structure, Tensor, Tensor, Tensor]) -> None:
    structure, scores, _, _ = small
    zero = torch.zeros(4, dtype=torch.float64)
    torch.testing.assert_close(pb.losses.Perceptron()(structure, scores, structure.argmax(scores)), zero)
    torch.testing.assert_close(pb.losses.SparseMAPLoss()(structure, scores, structure.sparsemap(scores)), zero)
    torch.testing.assert_close(pb.losses.SparseMAPLoss()(structure, 1000 * scores, structure.argmax(scores)), zero)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_padding_and_forbidden_parts_have_no_gradient(world: World, loss: pb.losses.Perceptron) -> None:
    scores = world.leaf()
    losses = loss(world.structure, scores, world.structure.marginals(world.scores))
    assert losses.shape == scores.shape[: -world.structure.event_dims]
    losses.sum().backward()
    assert losses.isfinite().all()
    assert (scores.grad[~world.allowed] == 0).all()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("loss", [pb.losses.CrossEntropy(), pb.losses.SparseMAPLoss()], ids=repr)
def test_gold_trees_supervise_a_parser(loss: pb.losses.CrossEntropy) -> None:
    """The paper's figure 1b: with labels for z the intermediate loss trains the encoder by itself."""
    tree = pb.DependencyTree()
    gold = tree.enumerate(4)[[3, 8, 20]]
    scores = torch.zeros_like(gold, requires_grad=True)
    optimizer = torch.optim.SGD([scores], lr=1.0)
    for _ in range(30):
        optimizer.zero_grad()
        loss(tree, scores, gold).sum().backward()
        optimizer.step()
    assert torch.equal(tree.argmax(scores), gold)


@each("loss", [*LOSSES, pb.losses.PerturbedLoss(sigma=1.0, samples=2)])
@pytest.mark.parametrize("padded", ENTRIES, ids=lambda padded: padded.name)
def test_the_padding_of_a_target_may_hold_anything(padded: Padded, loss: pb.losses.Loss) -> None:
    if not padded.gibbs and isinstance(loss, pb.losses.CrossEntropy):
        pytest.skip("no distribution")
    if not padded.projects and isinstance(loss, pb.losses.SparseMAPLoss):
        pytest.skip("no SparseMAP")
    structure, scores, mask = padded.structure(), padded.scores(), mask_of(padded)
    target = structure.argmax(padded.scores(seed=1))
    found = []
    for s, z in ((scores, target), (poisoned(padded, scores), poisoned(padded, target))):
        torch.manual_seed(0)
        leaf = s.clone().requires_grad_()
        value = loss(structure, leaf, z)
        found.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
    (clean, slope), (value, poisoned_slope) = found
    torch.testing.assert_close(value, clean)
    torch.testing.assert_close(poisoned_slope, torch.where(mask, slope, 0.0))
