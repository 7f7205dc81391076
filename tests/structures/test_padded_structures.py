"""The padding of structures and of other scores may hold anything, as that of the scores may."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from cases import ENTRIES, Entry
from each import each
from oracles import exact, mask_of, mean, poisoned

GARBAGE = each("garbage", [torch.nan, torch.inf, -torch.inf, 7.0])
CONVERSIONS = ["tags", "indices", "segments", "brackets", "path", "columns", "heads", "symbols"]


def gold(entry: Entry) -> torch.Tensor:
    """One structure per example."""
    return torch.stack([entry.all_of(example)[-1] for example in range(len(entry.sizes))])


@GARBAGE
@each("learned", [False, True])
def test_log_probabilities(gibbs, garbage, learned):
    """And their gradients, of which one in z makes them take another way."""
    scores, mask = gibbs.scores(), mask_of(gibbs)
    leaf = poisoned(gibbs, scores).requires_grad_()
    z = torch.where(mask, gold(gibbs), garbage).requires_grad_(learned)
    found = gibbs.structure().log_prob(leaf, z)
    (slope,) = torch.autograd.grad(found.sum(), leaf)
    assert not slope[~mask].any()
    for example in range(len(gibbs.sizes)):
        everything, value, p = exact(gibbs, scores, example)
        torch.testing.assert_close(found[example], value.log_softmax(0)[-1])
        torch.testing.assert_close(slope[example], everything[-1] - mean(p, everything))


def test_the_second_derivative_of_log_probabilities(gibbs):
    """Is that of log Z, with the other sign."""
    leaf = poisoned(gibbs, gibbs.scores()).requires_grad_()
    direction = torch.where(mask_of(gibbs), gibbs.scores(seed=1), 0.0)
    z = poisoned(gibbs, gold(gibbs))
    (slope,) = torch.autograd.grad(gibbs.structure().log_prob(leaf, z).sum(), leaf, create_graph=True)
    (found,) = torch.autograd.grad((slope * direction).sum(), leaf)
    (expected,) = torch.autograd.grad((gibbs.structure().marginals(leaf) * direction).sum(), leaf)
    torch.testing.assert_close(found, -expected)


@GARBAGE
def test_scores_of_structures(entry, garbage):
    scores, mask, clean = entry.scores(), mask_of(entry), gold(entry)
    leaf = poisoned(entry, scores).requires_grad_()
    z = torch.where(mask, clean, garbage).requires_grad_()
    found = entry.structure().score(leaf, z)
    for example in range(len(entry.sizes)):
        torch.testing.assert_close(found[example], exact(entry, scores, example)[1][-1])
    slope, slope_of_z = torch.autograd.grad(found.sum(), (leaf, z))
    torch.testing.assert_close(slope, clean)
    assert not slope_of_z[~mask].any()
    if not entry.own(clean).any():
        torch.testing.assert_close(slope_of_z, torch.where(mask, scores, 0.0))


def test_divergences(gibbs):
    p, q, mask, structure = gibbs.scores(), gibbs.scores(seed=1), mask_of(gibbs), gibbs.structure()
    for garbage in (torch.nan, torch.inf, -torch.inf):
        leaves = [torch.where(mask, s, garbage).requires_grad_() for s in (p, q)]
        found = structure.kl(*leaves)
        torch.testing.assert_close(found, structure.kl(p, q))
        for slope in torch.autograd.grad(found.sum(), leaves):
            assert slope.isfinite().all()
            assert not slope[~mask].any()


def test_a_start_of_sparsemap(projected):
    scores, structure = poisoned(projected, projected.scores()), projected.structure()
    found = structure.sparsemap(scores, warm_start=poisoned(projected, structure.argmax(scores)))
    torch.testing.assert_close(found, structure.sparsemap(scores), rtol=0, atol=1e-7)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@GARBAGE
def test_conversions(entry, garbage):
    """With leading dimensions against which the sizes broadcast, too. Those of one example alone cannot know its sizes."""
    structure, clean, unsized = entry.structure(), gold(entry), entry.make(*[None] * len(entry.sizes[0]))
    z = torch.where(mask_of(entry), clean, garbage)
    names = [name for name in CONVERSIONS if hasattr(structure, name)]
    assert bool(names) == entry.converts
    for name in names:
        convert, expected = getattr(structure, name), getattr(unsized, name)(clean)
        assert same(convert(z), expected)
        assert same(convert(torch.stack([z, clean]))[1], expected)
        assert same(convert(torch.stack([clean, z]))[1], expected)
        assert same(convert(clean[0]), getattr(unsized, name)(clean[0]))
        assert same(convert(clean.bool()), expected)


def same(a, b):
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_the_first_position_of_a_chain_has_one_row():
    chain, mu = pb.LinearChain(), pb.LinearChain().marginals(torch.zeros(4, 3, 3))
    expected = chain.tag_marginals(mu)
    mu[0, 1:] = torch.nan
    padded = pb.LinearChain(2).tag_marginals(mu.index_fill(0, torch.tensor([2, 3]), 7.0))
    torch.testing.assert_close(padded, torch.tensor([1 / 3, 1 / 3, 0, 0])[:, None].expand(4, 3))
    assert torch.equal(chain.tag_marginals(mu), expected)
    torch.testing.assert_close(expected, torch.full((4, 3), 1 / 3))
