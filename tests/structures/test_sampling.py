"""Samples have the frequencies of the enumerated distribution; fixed seeds, so that these tests always agree."""

import pytest
import torch

from each import each
from oracles import assert_structures, chi_square_tail, everything, forbid, index_of, totals

ALARM = 1e-4  # the chance that a right sampler fails one of these tests, were the seed not fixed


def draw(gibbs_case, structure, scores, seed=0):
    return structure.sample(scores, torch.Generator(gibbs_case.device).manual_seed(seed))


@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
@each("forbidden", [False, True])
def test_frequencies(gibbs_case, scale, forbidden):
    n, count = 3, 600 if gibbs_case.is_slow else 6000
    scores = gibbs_case.random(1, n=n, scale=scale, seed=1)
    scores = forbid(gibbs_case, scores, share=0.3, seed=2) if forbidden else scores
    z = draw(gibbs_case, gibbs_case.whole(), scores.expand(count, *gibbs_case.shape(n)))
    counts = torch.bincount(index_of(gibbs_case, z), minlength=len(everything(gibbs_case, n)))
    assert chi_square_tail(counts, totals(everything(gibbs_case, n), scores[0], gibbs_case.own).softmax(0)) > ALARM


def test_frequencies_in_a_ragged_batch(tree):
    """Sentences of several lengths, padded with NaN: each length has its own distribution."""
    lengths = torch.tensor([3, 1, 4, 2]).repeat(150 if tree.is_slow else 1500)
    scores = tree.random(4, n=5, seed=3).repeat(len(lengths) // 4, 1, 1)
    padded = torch.arange(5, device=tree.device) >= lengths[:, None].to(tree.device)
    scores = scores.masked_fill(padded[:, :, None] | padded[:, None, :], torch.nan)
    z = draw(tree, tree.whole(lengths), scores)
    for i, n in enumerate([3, 1, 4, 2]):
        of_this = z[i::4]
        assert (of_this.flatten(1).sum(1) == n).all()
        counts = torch.bincount(index_of(tree, of_this[:, :n, :n]), minlength=len(everything(tree, n)))
        if n > 1:
            assert chi_square_tail(counts, totals(everything(tree, n), scores[i, :n, :n], tree.own).softmax(0)) > ALARM


def test_a_sample_is_a_structure_in_the_dtype_of_the_scores(gibbs_case, dtype):
    scores = forbid(gibbs_case, gibbs_case.random(20, n=5, dtype=dtype, scale=2.0))
    z = draw(gibbs_case, gibbs_case.whole(), scores)
    assert z.dtype == dtype
    assert_structures(gibbs_case, z)
    assert not z[scores == -torch.inf].any()


def test_the_generator_decides_the_sample(gibbs_case):
    scores = gibbs_case.random(50, n=4)
    first, again, other = (draw(gibbs_case, gibbs_case.whole(), scores, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_seed_per_example_decides_its_sample_alone(gibbs_case):
    scores, seeds = gibbs_case.random(20, n=4), torch.arange(20, device=gibbs_case.device)
    if gibbs_case.name == "categorical":
        pytest.skip("draws in another way")
    whole = gibbs_case.whole().seeded_sample(scores, seeds)
    assert torch.equal(whole[5:7], gibbs_case.whole().seeded_sample(scores[5:7], seeds[5:7]))
    assert not torch.equal(whole, gibbs_case.whole().seeded_sample(scores, seeds + 100))


def test_the_global_generator_is_used_by_default(gibbs_case):
    scores = gibbs_case.random(50, n=4)
    torch.manual_seed(5)
    first = gibbs_case.whole().sample(scores)
    other = gibbs_case.whole().sample(scores)
    torch.manual_seed(5)
    assert torch.equal(first, gibbs_case.whole().sample(scores))
    assert not torch.equal(first, other)


def test_equal_sentences_of_a_batch_are_drawn_apart(gibbs_case):
    z = draw(gibbs_case, gibbs_case.whole(), torch.zeros(30, *gibbs_case.shape(4), device=gibbs_case.device))
    assert len(index_of(gibbs_case, z).unique()) > 2


def test_very_peaked_scores_give_the_argmax(gibbs_case, dtype):
    scores = gibbs_case.random(10, n=4, dtype=dtype, scale=1e6, seed=6)
    assert torch.equal(draw(gibbs_case, gibbs_case.whole(), scores), gibbs_case.whole().argmax(scores))
