"""Supervised losses against their formulas, by enumeration, and their gradients against finite differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from cases import ENTRIES, Entry
from each import each
from oracles import mask_of

SIZED = [entry for entry in ENTRIES if entry.name != "nonprojective-singleroot"]


@pytest.fixture(params=SIZED, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


def _gold(entry: Entry) -> Tensor:
    return torch.stack([entry.all_of(example)[len(entry.all_of(example)) // 2] for example in range(len(entry.sizes))])


def _totals(entry: Entry, example: int, parts: Tensor) -> Tensor:
    """<parts, z> for every structure of an example."""
    z = entry.all_of(example)
    return torch.where(z > 0, parts[example], 0.0).flatten(1).sum(1)


def _by_enumeration(entry: Entry, name: str, s: Tensor, gold: Tensor, cost: Tensor) -> Tensor:
    found = []
    for b in range(len(entry.sizes)):
        y = entry.all_of(b)
        value, costs = _totals(entry, b, s) + entry.own(y), _totals(entry, b, cost)
        wrong = (y * (1 - gold[b])).flatten(1).sum(1)
        right = torch.where(gold[b] > 0, s[b], 0.0).sum() + entry.own(gold[b : b + 1])[0]
        own = torch.where(gold[b] > 0, cost[b], 0.0).sum()
        found.append({
            "Perceptron": value.max() - right,
            "CrossEntropy": value.logsumexp(0) - right,
            "softmax-margin": (value + costs).logsumexp(0) - right,
            "Hinge": (value + wrong).max() - right,
            "Hinge with costs": (value + costs).max() - right,
            "SPOPlus": (2 * value + costs - entry.own(y)).max() - 2 * right - own + entry.own(gold[b : b + 1])[0],
        }[name])  # fmt: skip
    return torch.stack(found)


def _loss(name: str, cost: Tensor) -> pb.losses.Loss:
    made = {
        "softmax-margin": pb.losses.CrossEntropy(cost),
        "Hinge with costs": pb.losses.Hinge(lambda target: cost),
    }
    return made.get(name) or getattr(pb.losses, name)()


NAMES = ["Perceptron", "CrossEntropy", "softmax-margin", "Hinge", "Hinge with costs", "SPOPlus"]


@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients(entry: Entry, name: str) -> None:
    """In padding anything may stand; the gradients are zero there."""
    if not entry.gibbs and name in ("CrossEntropy", "softmax-margin"):
        pytest.skip("no distribution")
    mask, gold = mask_of(entry), _gold(entry)
    leaf = torch.where(mask, entry.scores(), torch.nan).requires_grad_()
    cost = torch.where(mask, entry.scores(seed=1).abs(), torch.nan)
    given = {"costs": cost} if name == "SPOPlus" else {}
    found = _loss(name, cost)(entry.structure(), leaf, target=torch.where(mask, gold, torch.nan), **given)
    torch.testing.assert_close(found, _by_enumeration(entry, name, leaf.detach(), gold, cost))
    found.sum().backward()
    assert not leaf.grad[~mask].any()
    step = torch.where(mask, entry.scores(seed=2), 0.0) * 1e-5
    up, down = (_by_enumeration(entry, name, leaf.detach() + sign * step, gold, cost) for sign in (1, -1))
    torch.testing.assert_close((leaf.grad * step).flatten(1).sum(1), (up - down) / 2, rtol=1e-4, atol=1e-9)


def test_hinge_is_the_perceptron_without_a_cost(entry: Entry) -> None:
    scores, gold = entry.scores(), _gold(entry)
    free = pb.losses.Hinge(cost=torch.zeros_like(scores))(entry.structure(), scores, target=gold)
    torch.testing.assert_close(free, pb.losses.Perceptron()(entry.structure(), scores, target=gold))


def test_hinge_bounds_the_number_of_wrong_parts(entry: Entry) -> None:
    scores, gold, structure = torch.where(mask_of(entry), entry.scores(), 0.0), _gold(entry), entry.structure()
    wrong = (structure.argmax(scores) * (1 - gold)).flatten(1).sum(1)
    assert (pb.losses.Hinge()(structure, scores, target=gold) >= wrong - 1e-9).all()
    sure = pb.losses.Hinge()(structure, 100 * (2 * gold - 1), target=gold)
    torch.testing.assert_close(sure, torch.zeros_like(sure))


def test_spo_plus_bounds_the_regret_and_finds_its_target(entry: Entry) -> None:
    structure, mask = entry.structure(), mask_of(entry)
    costs, scores = (torch.where(mask, entry.scores(seed=seed), 0.0) for seed in (3, 4))
    best = structure.argmax(-costs)
    regret = structure.score(-costs, best) - structure.score(-costs, structure.argmax(scores))
    found = pb.losses.SPOPlus()(structure, scores, costs=costs)
    assert (found >= regret - 1e-9).all()
    torch.testing.assert_close(found, pb.losses.SPOPlus()(structure, scores, best, costs=costs))
    torch.testing.assert_close(pb.losses.SPOPlus()(structure, -costs, costs=costs), torch.zeros_like(found))


def test_softmax_margin_bounds_the_hinge(entry: Entry) -> None:
    if not entry.gibbs:
        pytest.skip("no distribution")
    scores, gold = entry.scores(), _gold(entry)
    soft = pb.losses.CrossEntropy(pb.losses.hamming)(entry.structure(), scores, target=gold)
    assert (soft >= pb.losses.Hinge()(entry.structure(), scores, target=gold) - 1e-9).all()


LOSSES = [
    pb.losses.CrossEntropy(), pb.losses.CrossEntropy(pb.losses.hamming), pb.losses.Perceptron(), pb.losses.Hinge(),
    pb.losses.SparseMAPLoss(), pb.losses.PerturbedLoss(samples=2),
]  # fmt: skip


@each("loss", LOSSES)
def test_targets_must_be_structures(entry: Entry, loss: pb.losses.Loss) -> None:
    if not entry.gibbs and isinstance(loss, pb.losses.CrossEntropy):
        pytest.skip("no distribution")
    if not entry.projects and isinstance(loss, pb.losses.SparseMAPLoss):
        pytest.skip("no SparseMAP")
    scores, gold = torch.where(mask_of(entry), entry.scores(), 0.0), _gold(entry)
    wrong = gold.clone()
    wrong[0] = torch.where(mask_of(entry)[0], 1.0, 0.0)
    with pytest.raises(ValueError, match=r"target\[0\] is not a structure of"):
        loss(entry.structure(), scores, target=wrong)
    with pytest.raises(ValueError, match=r"target\[\d\] is not a structure of"):
        loss(entry.structure(), scores, target=3 * scores)
    with pytest.raises(ValueError, match=r"scores has shape .* and target"):
        loss(entry.structure(), scores, target=gold[..., :-1])
    assert loss(entry.structure(validate=False), scores, target=wrong).shape == scores.shape[:1]
    averages = torch.stack([entry.all_of(example).mean(0) for example in range(len(entry.sizes))])
    for target in (averages, (averages + gold) / 2, averages.float().double()):
        assert loss(entry.structure(), scores, target=target).isfinite().all()


@each("dtype", [torch.float16, torch.bfloat16])
@each("loss", [pb.losses.Perceptron(), pb.losses.Hinge(), pb.losses.CrossEntropy()])
def test_half_precision_is_summed_in_full(entry: Entry, loss: pb.losses.Loss, dtype: torch.dtype) -> None:
    if not entry.gibbs and isinstance(loss, pb.losses.CrossEntropy):
        pytest.skip("no distribution")
    scores, gold = entry.scores(scale=30.0).to(dtype), _gold(entry)
    found = loss(entry.structure(), scores, target=gold.to(dtype))
    assert found.dtype == entry.result(dtype)
    exact = loss(entry.structure(), scores.double(), target=gold)
    torch.testing.assert_close(found.double(), exact, rtol=2 * torch.finfo(found.dtype).eps, atol=1e-6)


def test_large_scores_do_not_cancel(entry: Entry) -> None:
    """The best structure's score and the target's are subtracted part by part."""
    scores, gold = (1e6 + entry.scores()).float(), _gold(entry).float()
    found = pb.losses.Perceptron()(entry.structure(), scores, target=gold)
    best = entry.structure().argmax(scores)
    apart = torch.where(mask_of(entry), best - gold, 0.0)
    exact = (apart.double() * scores.double()).flatten(1).sum(1) + entry.own(best) - entry.own(gold)
    assert torch.equal(found, exact.float())


def test_an_intermediate_loss_must_predict_without_a_target() -> None:
    with pytest.raises(TypeError, match=r"loss is Hinge\(cost=None\); an intermediate loss must be a FenchelYoungLoss"):
        pb.PulledBack(pb.losses.Hinge(), pb.parts.FromArgmax(), pb.parts.Projected())
    with pytest.raises(TypeError, match="has a cost, which needs the target"):
        pb.PulledBack(pb.losses.CrossEntropy(torch.ones(3)), pb.parts.FromArgmax(), pb.parts.Projected())


def test_costs_have_the_shape_of_the_scores() -> None:
    with pytest.raises(TypeError, match="the cost is a int; it must be a tensor"):
        pb.losses.Hinge(lambda target: 3)(pb.Categorical(), torch.zeros(2, 3), target=torch.eye(3)[:2])
    with pytest.raises(ValueError, match="and cost"):
        pb.losses.Hinge(torch.ones(2, 4))(pb.Categorical(), torch.zeros(2, 3), target=torch.eye(3)[:2])


@pytest.mark.parametrize("loss", [pb.losses.CrossEntropy(), pb.losses.Hinge(), pb.losses.Perceptron()], ids=repr)
def test_losses_compile(loss: pb.losses.Loss) -> None:
    chain, scores = pb.LinearChain(torch.tensor([4, 2])), torch.randn(2, 4, 3, 3)
    z = chain.argmax(torch.randn(2, 4, 3, 3))
    compiled = torch.compile(lambda s, target: loss(chain, s, target=target), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(scores, z), loss(chain, scores, target=z))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.long], ids=str)
@pytest.mark.parametrize("name", [*NAMES, "SparseMAPLoss", "PerturbedLoss"])
def test_targets_of_any_dtype(name: str, dtype: torch.dtype) -> None:
    tree, scores, cost = pb.DependencyTree(), torch.randn(2, 4, 4), torch.rand(2, 4, 4)
    gold, given = tree.argmax(torch.randn(2, 4, 4)), {"costs": cost} if name == "SPOPlus" else {}
    found = []
    for target in (gold, gold.to(dtype)):
        torch.manual_seed(0)
        found.append(_loss(name, cost)(tree, scores, target=target, **given))
    assert torch.equal(*found)


def test_a_boolean_target_has_a_hamming_cost() -> None:
    target = torch.tensor([[True, False, False]])
    loss = pb.losses.CrossEntropy(pb.losses.hamming)(pb.Categorical(), torch.zeros(1, 3), target=target)
    torch.testing.assert_close(loss, torch.tensor([1 + 2 * torch.e]).log())


@pytest.mark.parametrize("name", ["CrossEntropy", "Hinge", "Perceptron", "SparseMAPLoss", "PerturbedLoss"])
def test_a_missing_target_is_named(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(.*was given no target; pass target=z"):
        getattr(pb.losses, name)()(pb.DependencyTree(), torch.randn(2, 3, 3))


@pytest.mark.parametrize("name", ["CrossEntropy", "Hinge"])
def test_a_number_is_no_cost(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}: cost is 2.0; it must be a tensor of costs .* such as lambda z: 2.0"):
        getattr(pb.losses, name)(2.0)
