"""Recursions as rules: the committed text is what the generator makes; the kinds of number agree where one follows another."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pullback as pb
from pullback.inference.engine.rules import module
from pullback.inference.engine.rules.batch import Batch
from pullback.inference.engine.rules.definition import Index, Sum, index_of, term_of
from pullback.inference.front.family import backend

STRUCTURES = {"projective tree": pb.DependencyTree(validate=False), "binary tree": pb.BinaryTree(validate=False)}


@pytest.mark.parametrize("folder", module.FOLDERS)
def test_the_committed_module_is_what_the_generator_makes(folder):
    assert module.path_of(folder).read_text() == module.module(folder), "run python -m pullback.inference.engine.rules"


def test_indices_are_a_variable_a_number_or_their_sum():
    assert [index_of(text) for text in ("k", "3", "k + 1", "n - 1")] == [
        Index("k", 0), Index("", 3), Index("k", 1), Index("n", -1)
    ]  # fmt: skip
    for text in ("2 * k", "i + j", ""):
        with pytest.raises(ValueError, match="is no index"):
            index_of(text)
    with pytest.raises(ValueError, match="is no item"):
        term_of("right[i, k]")


def test_rules_that_no_loop_can_run_are_refused():
    with pytest.raises(ValueError, match="more than two factors"):
        Sum("all(i, j)", "a(i, k)", "b(k, l)", "c(l, j)", k=("i", "j"))
    with pytest.raises(ValueError, match="needs two factors"):
        Sum("all(i, j)", "a(i, k)", k=("i", "j"))


def found(structure, scores, direction):
    x = scores.clone().requires_grad_()
    mu = structure.marginals(x)
    (product,) = torch.autograd.grad((mu * direction).sum(), x)
    return structure.log_partition(scores), mu.detach(), product, structure.entropy(scores)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_same_from_every_kind_of_number(name, dtype, monkeypatch):
    """Limits that nothing meets make each kind hand over to the next: weights, numbers with exponents, those of any size."""
    structure, generator = STRUCTURES[name], torch.Generator().manual_seed(0)
    scores, direction = (torch.randn(20, 9, 9, generator=generator, dtype=dtype) for _ in range(2))
    scores[:, 2, 5] = -torch.inf
    expected = found(structure, scores.double(), direction.double())
    kinds, run, last = [], Batch.run, ["scaled"]

    def refuse(batch, module, name, *rest):
        kinds.append(name)
        run(batch, module, name, *rest)
        if not name.endswith((last[0], "far")):
            batch.status[:] = -1

    monkeypatch.setattr(Batch, "run", refuse)
    for last[0] in ("scaled", "far"):
        for result, exact in zip(found(structure, scores, direction), expected, strict=True):
            assert (result.double() - exact).abs().max() < (3e-6 if dtype == torch.float32 else 1e-12)
    assert {"marginals", "marginals_scaled", "marginals_far", "product", "product_scaled", "product_far"} <= set(kinds)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 3e5])
@pytest.mark.parametrize("multiroot", [False, True], ids=["one root", "any roots"])
def test_derivatives_have_the_same_bits_alone_as_next_to_longer_examples(multiroot, scale, dtype):
    """The cells beyond a short example have no part, whatever is subtracted from a direction, and scale nothing."""
    generator, lengths = torch.Generator().manual_seed(0), torch.tensor([4, 2, 3, 1, 2, 2, 3, 2])
    scores, direction = (torch.randn(8, 5, 5, generator=generator, dtype=dtype) for _ in range(2))
    _, mu, product, _ = found(pb.DependencyTree(lengths, multiroot=multiroot), scale * scores, direction)
    for i, n in enumerate(lengths):
        structure = pb.DependencyTree(lengths[i : i + 1], multiroot=multiroot)
        _, own_mu, own, _ = found(structure, scale * scores[i : i + 1], direction[i : i + 1])
        assert torch.equal(own_mu[0], mu[i])
        assert torch.equal(own[0], product[i]), f"{n} words"


def test_a_score_of_many_millions_beside_forbidden_parts_is_no_lack_of_structures():
    """Sums whose exponents are below all that are kept are compared with zeros, whose exponents are no lower."""
    scores = torch.zeros(1, 6, 6)
    scores[0, 0, 0] = 5e7
    scores[0, [1, 1, 2], [2, 3, 3]] = scores[0, 1:, 5] = -torch.inf
    scores[0, 5, 5] = 0.0
    tree = pb.BinaryTree()
    expected = tree.log_partition(scores.double()), tree.marginals(scores.double())
    torch.testing.assert_close(tree.log_partition(scores).double(), expected[0], rtol=1e-7, atol=0)
    torch.testing.assert_close(tree.marginals(scores).double(), expected[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 100.0, 3e6])
def test_short_sentences_beside_long_ones_have_the_bits_that_they_have_alone(scale):
    """Long sentences begin in float64, which is no reason for the short ones to be computed there when they leave float32."""
    lengths = torch.tensor([60, 4, 9])
    scores = scale * torch.randn(3, 60, 60, generator=torch.Generator().manual_seed(1))
    tree = pb.DependencyTree(lengths)
    together = tree.log_partition(scores), tree.marginals(scores)
    for i in range(3):
        alone = pb.DependencyTree(lengths[i : i + 1])
        assert torch.equal(alone.log_partition(scores[i : i + 1])[0], together[0][i])
        assert torch.equal(alone.marginals(scores[i : i + 1])[0], together[1][i])


@pytest.mark.parametrize("scale", [1.0, 40.0, 3e6])
@pytest.mark.parametrize("name", STRUCTURES)
def test_samples_have_the_marginals_at_every_scale(name, scale):
    """Scores of a few large sizes: many structures have the same large score, and differ by small ones."""
    structure, generator = STRUCTURES[name], torch.Generator().manual_seed(3)
    scores = scale * torch.randint(2, (6, 6), generator=generator) + torch.randn(6, 6, generator=generator)
    draws = structure.sample(scores.double().expand(4000, 6, 6), generator=torch.Generator().manual_seed(0))
    mu = structure.marginals(scores.double())
    assert (draws.mean(0) - mu).abs().max() < 5 * np.sqrt(0.25 / 4000)
    assert ((mu > 0.01) & (mu < 0.99)).any()


@pytest.mark.parametrize("name", STRUCTURES)
def test_large_scores_take_no_other_time_than_numbers_with_exponents(name, monkeypatch):
    """No example of ordinary large scores or masks needs exponents of any size."""
    kernels, run = [], Batch.run
    monkeypatch.setattr(Batch, "run", lambda b, module, name, *rest: (kernels.append(name), run(b, module, name, *rest)))
    scores = 1000 * torch.randn(20, 12, 12, generator=torch.Generator().manual_seed(0))
    mask = torch.rand(20, 12, 12, generator=torch.Generator().manual_seed(1)) < 0.2
    for mask_value in (-1e9, -1e30, torch.finfo(torch.float32).min):
        structure, masked = (
            STRUCTURES[name],
            torch.where(mask & (STRUCTURES[name].argmax(scores) == 0), mask_value, scores),
        )
        structure.marginals(masked), structure.log_partition(masked), structure.sample(masked)
    assert "marginals_scaled" in kernels
    assert not any(name.endswith("far") for name in kernels)


@pytest.mark.parametrize("scale", [1.0, 100.0, 3e17])
@pytest.mark.parametrize("name", STRUCTURES)
def test_short_examples_in_a_wide_tensor_stay_in_their_memory(name, scale):
    """Scratch memory is for the longest example, and rows of scores are as long as the padding."""
    structure = type(STRUCTURES[name])
    scores = scale * torch.randn(20, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    wide = torch.full((20, 4, 700), torch.nan, dtype=torch.float64)
    wide[:, :, :4] = scores
    wide = torch.nn.functional.pad(wide, (0, 0, 0, 696), value=torch.nan)
    direction = torch.randn(20, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    padded = torch.nn.functional.pad(direction, (0, 696, 0, 696), value=torch.nan)
    narrow = found(structure(), scores, direction)
    for result, expected in zip(found(structure(torch.full((20,), 4)), wide, padded), narrow, strict=True):
        inside = result[:, :4, :4] if result.dim() == 3 else result
        assert torch.allclose(inside, expected, rtol=1e-12, atol=1e-10)
        assert result.dim() < 3 or not result[:, 4:].any()


@pytest.mark.parametrize("lowest", [-3.1e5, -9.0e7, torch.finfo(torch.float32).min])
def test_sums_of_weights_below_all_exponents_are_no_zeros(lowest):
    """One score is so much larger than the others that these are below all exponents, and all are needed."""
    scores = torch.tensor([
        [0.0, 0.0, 0.1, 0.0, lowest, 9.8e7], [0.0, 0.0, lowest, -1.7e6, lowest, lowest], [0.0, 0.0, 0.0, 0.0, lowest, lowest],
        [0.0, 0.0, 0.0, 0.0, lowest, lowest], [0.0, 0.0, 0.0, 0.0, 0.1, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ])  # fmt: skip
    tree = pb.BinaryTree()
    with backend("reference"):
        expected = tree.marginals(scores.double()), tree.log_partition(scores.double())
    assert (tree.marginals(scores) - expected[0]).abs().max() < 1e-5
    assert torch.isclose(tree.log_partition(scores).double(), expected[1])


@pytest.mark.parametrize("power", [12, 16, 20, 26, 30, 38, 60, 300])
@pytest.mark.parametrize("name", STRUCTURES)
def test_sums_of_exponents_have_no_rounding(name, power):
    """What is added in one order is compared with what is added in another: one unit lost would be 2^44 powers of two."""
    structure, generator = STRUCTURES[name], torch.Generator().manual_seed(power)
    scores = torch.randn(40, 7, 7, generator=generator, dtype=torch.float64)
    scores = 10.0**power * torch.cat([scores, scores.round()])
    z, mu = structure.argmax(scores), structure.marginals(scores)
    assert (mu.sum((1, 2)) - z.sum((1, 2))).abs().max() < 1e-9
    assert ((mu[:40] - z[:40]).abs().amax((1, 2)) < 1e-9).sum() > 36  # but for ties in float64
    assert torch.allclose(structure.entropy(scores)[:36], torch.zeros(36, dtype=torch.float64), atol=1e-9) or power > 60


def bridged(n, low, dtype):
    """Projective trees with one root whose last word needs an arc too rare for the dtype: from the first or the middle word.

    From the first word, many more trees of the words between make up for it.
    """
    scores = torch.zeros(n, n, dtype=torch.float64).fill_diagonal_(-torch.inf)
    scores[:, [0, n // 2, -1]] = -torch.inf
    scores[0, 0], scores[-1, -1], scores[-1, n // 2] = 0.0, 0.0, 0.0
    scores[-1, 0], scores[0, -1] = 3 * low, low
    scores[n // 2, -1], scores[0, n // 2] = low / 2, low / 2 - 2
    return scores.to(dtype)[None]


@pytest.mark.parametrize(
    ("n", "low", "dtype"), [(40, -92.0, torch.float32), (56, -88.0, torch.float32), (120, -710.0, torch.float64)]
)
def test_a_weight_that_is_lost_may_be_needed_for_a_large_sum(n, low, dtype):
    tree, scores = pb.DependencyTree(multiroot=False), bridged(n, low, dtype)
    with backend("reference"):
        log_z, mu = tree.log_partition(scores.double()), tree.marginals(scores.double())
    assert mu[0, 0, -1] > 0.9
    assert (tree.log_partition(scores) - log_z).abs() < 1e-4
    assert (tree.marginals(scores) - mu).abs().max() < 1e-5
    draws = tree.sample(scores.double().expand(200, n, n), generator=torch.Generator().manual_seed(0))
    assert (draws.mean(0) - mu[0]).abs().max() < 5 * np.sqrt(0.25 / 200)


def test_log_partitions_of_scores_that_cancel_have_their_digits():
    """Two words: 1e13 is added and taken off in different columns, one of which has a score of 1e15 that no tree uses."""
    large = torch.tensor(1e13, dtype=torch.float64)
    for more in (3.0, 1e10, 123456789.0):
        scores = torch.tensor([[[-large - more, large], [-torch.inf, -torch.inf]]], dtype=torch.float64)
        scores[0, 1, 1], scores[0, 1, 0] = -torch.inf, 1e15 + 3 * more
        assert (pb.DependencyTree(multiroot=False).log_partition(scores) - (-more)).abs() < 1e-4


def test_samples_of_one_word_that_may_not_be_used_are_no_samples():
    scores = torch.tensor([[[-torch.inf]], [[0.0]]])
    draws = pb.BinaryTree(validate=False).sample(scores).flatten()
    assert draws[0].isnan()
    assert draws[1] == 1
    with pytest.raises(ValueError, match="sentence 0"):
        pb.BinaryTree(validate=True).sample(scores)
