"""Planted structures: gold by enumeration, labels that need it, replicas, resuming, errors."""

import io

import pytest
import torch

from pullback import DependencyTree
from pullback_study.tasks import find_task
from pullback_study.tasks.own import Blended
from pullback_study.tasks.planted.beds import find_bed
from pullback_study.tasks.planted.task import PLANTED, SELECTIONS

TASK = find_task("planted")
SMALL = {"n": 3, "train_examples": 64, "validation_examples": 20, "test_examples": 20, "batch_size": 16, "evaluate_every": 5}
SIZES = {"tree": (4,), "chain": (4, 3), "segmentation": (4, 3, 2), "subset": (4,), "alignment": (4, 4), "binary-tree": (4,)}


def never():
    return False


def replicas(configs):
    return TASK.trainer(configs, "cpu")


def drawn(count, **fields):
    bed = find_bed(TASK.configure(estimator="ste-i", **fields))
    generator = torch.Generator().manual_seed(0)
    planted = bed.plant(generator)
    return bed, {name: value[0] for name, value in planted.items()}, bed.draw(count, planted, generator)


def score(structure, planted, x, y, part):
    """The planted scorer's formula for one part of one example."""
    i, *rest = part
    if structure == "tree":
        return planted["root"] @ x[i] if rest == [i] else x[i] @ planted["arcs"] @ x[rest[0]]
    if structure == "chain":
        return planted["tags"][rest[1]] @ x[i] + (planted["transitions"][rest[0], rest[1]] if i else 0.0)
    if structure == "segmentation":
        w, c = rest
        return planted["starts"][c] @ x[i] + planted["ends"][c] @ x[i + w] + planted["lengths"][w, c]
    if structure == "subset":
        return planted["items"] @ x[i]
    if structure == "alignment":
        return x[i] @ planted["cells"] @ y[rest[0]]
    return x[i] @ planted["spans"] @ x[rest[0]]


@pytest.mark.parametrize("structure", PLANTED)
def test_gold_is_the_best_structure_by_enumeration_and_decides_the_label(structure):
    bed, planted, examples = drawn(12, structure=structure, n=4, noise=0.0)
    every = bed.structure.enumerate(*SIZES[structure])
    common = every.bool().all(0)
    for e in range(12):
        x, gold, values = examples["x"][e], examples["gold"][e], examples["values"][e]
        y = examples.get("y", examples["x"])[e]
        total = torch.stack([sum(score(structure, planted, x, y, part) for part in z.nonzero().tolist()) for z in every])
        assert torch.equal(gold, every[total.argmax()].to(gold.dtype))
        sums = sum(values[tuple(part)] for part in gold.nonzero().tolist() if not common[tuple(part)])
        assert bool(examples["label"][e]) == bool(sums[0] * sums[1] > 0)
        assert values.flatten(0, -2).sum(0).abs().max() < 1e-5, "the sum over all parts must say nothing"


def test_temperatures_and_samples_are_the_estimator_s():
    config = TASK.configure(estimator="imle", temperature=0.5, samples=3, **SMALL, steps=1)
    estimator = replicas([config]).estimator
    assert "samples=3" in repr(estimator)
    assert "temperature=0.5" in repr(estimator)
    assert replicas([TASK.configure(estimator="imle", **SMALL, steps=1)]).estimator != estimator
    with pytest.raises(ValueError, match="samples is 3; marginals has none: leave it out"):
        TASK.configure(estimator="marginals", samples=3)


def test_noise_and_share():
    _, _, clean = drawn(2000, n=4)
    _, _, noisy = drawn(2000, n=4, noise=1.0)
    assert torch.equal(clean["gold"], clean["seen"])
    agreement = (noisy["gold"] * noisy["seen"]).sum((1, 2)).mean() / 4
    assert 0.3 < agreement < 0.9
    _, _, without = drawn(2000, n=4, share=0.0)
    assert torch.equal(without["label"] > 0, without["shared"] > 0)


@pytest.mark.parametrize(("structure", "n"), [("tree", 6), ("subset", 12)])
def test_a_bag_of_parts_stays_at_chance_and_the_gold_structure_suffices(structure, n):
    accuracy = {}
    for name in ("bag", "gold"):
        fields = {"structure": structure, "n": n, "steps": 400, "learning_rate": 0.03}
        configs = [TASK.configure(estimator=name, seed=seed, **fields) for seed in (0, 1)]
        group = replicas(configs)
        group.advance(400, never)
        accuracy[name] = sum(result["test_accuracy"] for result in group.results()) / 2
    assert abs(accuracy["bag"] - 50) < 5
    assert accuracy["gold"] > 95


@pytest.mark.parametrize("structure", SELECTIONS)
def test_selections_have_the_published_odds(structure):
    _, _, examples = drawn(4000, structure=structure)
    x, total = examples["x"], torch.zeros(4000)
    skin = (x[:, :4] ** 2).sum(1) - 4
    at = 4 if structure == "switch" else 0
    added = -100 * torch.sin(0.2 * x[:, at]) + x[:, at + 1].abs() + x[:, at + 2] + torch.exp(-x[:, at + 3]) - 2.4
    odds = {"xor": x[:, 0] * x[:, 1], "orange-skin": skin, "additive": added, "switch": torch.where(x[:, 9] > 0, skin, added)}
    p = torch.sigmoid(odds[structure])
    total = (examples["label"] - p).sum() / (p * (1 - p)).sum().sqrt()
    assert abs(total) < 4
    assert ((examples["label"] - p) * (p - p.mean())).mean().abs() < 0.02
    chosen = {"xor": {2}, "orange-skin": {4}, "additive": {4}, "switch": {5}}[structure]
    assert set(examples["gold"].sum(1).tolist()) == chosen
    if structure == "switch":
        assert abs(x[:, 9].abs().mean() - 3) < 0.1
        assert torch.equal(examples["gold"][:, 0] > 0, x[:, 9] > 0)


TREES = ("marginals", "sfe-leave-one-out", "sfe-baseline", "adaptive-imle", "perturbed-argmax", "spigot", "bag")
CASES = [*(("tree", name) for name in TREES), ("chain", "sampled-ste"), ("xor", "imle")]


@pytest.mark.parametrize(("structure", "estimator"), CASES)
def test_replicas_equal_single_runs(structure, estimator):
    fields = {**SMALL, "structure": structure, "steps": 12, "dtype": "float64"}
    if structure in SELECTIONS:
        del fields["n"]
    sizes = (0.5, 2.0) if "step_size" in TASK.methods[estimator].accepted else (None,)
    configs = [
        TASK.configure(estimator=estimator, seed=seed, learning_rate=rate, step_size=size, noise=noise, **fields)
        for seed, noise in ((3, 0.0), (4, 0.0 if structure in SELECTIONS else 0.5))
        for rate, size in zip((0.01, 0.02), sizes * 2, strict=False)
    ]  # fmt: skip
    together = replicas(configs)
    together.advance(12, never)
    for r in (0, 3):
        alone = replicas([configs[r]])
        alone.advance(12, never)
        torch.testing.assert_close(together.theta[r], alone.theta[0], rtol=1e-9, atol=1e-11)
        assert together.results()[r]["test_recovery"] == pytest.approx(alone.results()[0]["test_recovery"], nan_ok=True)
    assert not torch.equal(together.theta[0], together.theta[2])


@pytest.mark.parametrize("estimator", ["sampled-ste", "adaptive-imle"])
def test_a_restored_group_ends_with_the_same_numbers(estimator):
    configs = [TASK.configure(estimator=estimator, seed=seed, steps=14, **SMALL) for seed in (0, 1)]
    straight, first, second = replicas(configs), replicas(configs), replicas(configs)
    straight.advance(14, never)
    first.advance(7, never)
    buffer = io.BytesIO()
    torch.save(first.state(), buffer)
    buffer.seek(0)
    second.restore(torch.load(buffer, weights_only=True))
    second.advance(14, never)
    assert torch.equal(straight.theta, second.theta)
    assert straight.history() == second.history()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"noise": -0.5}, "noise is -0.5; it must be at least 0"),
        ({"n": 0}, "n is 0; it must be at least 2"),
        ({"share": 1.5}, "share is 1.5; it must be at most 1"),
        ({"structure": "forest"}, "structure is 'forest'; known are"),
        ({"structure": "xor", "n": 7}, "n is 7; xor is fixed by its definition: leave it out"),
        ({"batch_size": 10_000}, "batch_size is 10000; it must be at most train_examples, 2048"),
        ({"estimator": "entmax"}, "there is no estimator 'entmax'"),
    ],
)
def test_bad_options_say_what_to_do(fields, message):
    with pytest.raises(ValueError, match=message):
        TASK.configure(**{"estimator": "spigot", **fields})


def test_blended_is_half_the_relaxation_and_half_simple():
    torch.manual_seed(0)
    structure, decoder = DependencyTree(), torch.randn(2, 3, 3, dtype=torch.float64)
    z = structure.argmax(torch.randn(2, 3, 3, dtype=torch.float64))
    structure.sample = lambda scores, generator=None: z
    leaf = torch.randn(2, 3, 3, dtype=torch.float64).requires_grad_()
    Blended().objective(structure, leaf, lambda y: (y * decoder).sum((1, 2)).square()).sum().backward()
    mu = structure.marginals(leaf)
    gamma = sum((y * decoder).sum((1, 2), keepdim=True) * decoder for y in (mu, z)).detach()
    (expected,) = torch.autograd.grad(mu, leaf, gamma)
    torch.testing.assert_close(leaf.grad, expected)


def test_groups_hold_what_differs_in_more_than_the_method_and_the_size():
    settings = [(n, seed, rate, noise) for n in (3, 4) for seed in (0, 1) for rate in (0.01, 0.02) for noise in (0.0, 1.0)]
    fields = [dict(zip(("n", "seed", "learning_rate", "noise"), each, strict=True)) for each in settings]
    configs = [TASK.configure(estimator="spigot", **each) for each in fields]
    groups = TASK.partition(configs)
    assert [len(group) for group in groups] == [8, 8]
    assert sorted(repr(config) for group in groups for config in group) == sorted(map(repr, configs))
    many = TASK.partition([TASK.configure(estimator="ste-s", seed=seed) for seed in range(700)])
    assert [len(group) for group in many] == [320, 320, 60]
