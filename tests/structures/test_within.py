"""The probability that only some parts are used, by enumeration."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from each import each
from oracles import exact, mask_of, poisoned


def _masks(entry, seed):
    """Masks of every kind, one for each example: single entries, whole slices, all but a structure, nothing allowed."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(entry.sizes), *entry.parts)
    yield torch.rand(shape, generator=generator) > 0.15
    row = torch.ones(shape, dtype=torch.bool)
    row.transpose(0, 1)[0] = False
    yield row
    only = torch.stack([entry.all_of(example)[-1] > 0 for example in range(len(entry.sizes))])
    yield only
    yield torch.zeros(shape, dtype=torch.bool)
    yield torch.ones(shape, dtype=torch.bool)


@each("seed", [0, 1])
def test_against_enumeration(gibbs, seed):
    scores, mask = gibbs.scores(seed), mask_of(gibbs)
    for allowed in _masks(gibbs, seed):
        leaf = poisoned(gibbs, scores).requires_grad_()
        found = gibbs.structure().log_prob_within(leaf, allowed)
        direction = torch.where(mask, gibbs.scores(seed=5), 0.0)
        (slope,) = torch.autograd.grad(found[found > -torch.inf].sum(), leaf)
        assert not slope[~mask].any()
        for example in range(len(gibbs.sizes)):
            z, value, _ = exact(gibbs, scores.clone().requires_grad_(), example)
            inside = ~((z > 0) & ~allowed[example]).flatten(1).any(1)
            s = scores.clone().requires_grad_()
            z, value, _ = exact(gibbs, s, example)
            if not inside.any():
                assert found[example] == -torch.inf
                assert not slope[example].any()
                continue
            expected = value[inside].logsumexp(0) - value.logsumexp(0)
            torch.testing.assert_close(found[example], expected, atol=1e-9, rtol=1e-7)
            (own,) = torch.autograd.grad(expected, s, allow_unused=True, materialize_grads=True)
            inner = (own[example] * direction[example]).sum()
            torch.testing.assert_close((slope[example] * direction[example]).sum(), inner, atol=1e-8, rtol=1e-6)


def test_several_masks_for_one_batch(gibbs):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0)
    masks = torch.stack(list(_masks(gibbs, 0)))
    found = gibbs.structure().log_prob_within(scores, masks)
    for mask, one in zip(masks, found, strict=True):
        torch.testing.assert_close(gibbs.structure().log_prob_within(scores, mask), one)
    assert (found <= 0).all()
    torch.testing.assert_close(found[-1], torch.zeros_like(found[-1]))


def test_what_the_scores_forbid_stays_forbidden(gibbs):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0)
    gold = torch.stack([gibbs.all_of(example)[-1] for example in range(len(gibbs.sizes))])
    forbidden = torch.where(gold > 0, scores, -torch.inf)
    found = gibbs.structure().log_prob_within(forbidden, torch.ones_like(scores, dtype=torch.bool))
    torch.testing.assert_close(found, torch.zeros_like(found))
    empty = gibbs.structure().log_prob_within(forbidden, gold == 0)
    of_empty = -gibbs.structure().log_partition(forbidden)
    for example in range(len(gibbs.sizes)):
        exists = not gibbs.infeasible or not gold[example].any()
        torch.testing.assert_close(empty[example], of_empty[example] if exists else torch.tensor(-torch.inf).double())


@each("dtype", [torch.float16, torch.float32])
def test_precision(gibbs, dtype):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0).to(dtype)
    allowed = next(iter(_masks(gibbs, 3)))
    found = gibbs.structure().log_prob_within(scores, allowed)
    assert found.dtype == gibbs.result(dtype)
    exact_value = gibbs.structure().log_prob_within(scores.double(), allowed)
    torch.testing.assert_close(found.double(), exact_value, atol=1e-5, rtol=2 * torch.finfo(dtype).eps)


def test_transforms(gibbs):
    scores = torch.where(mask_of(gibbs), gibbs.scores(), 0.0)
    allowed, structure = next(iter(_masks(gibbs, 4))), gibbs.structure()
    mapped = torch.vmap(lambda s: structure.log_prob_within(s, allowed))(torch.stack([scores, -scores]))
    torch.testing.assert_close(mapped[1], structure.log_prob_within(-scores, allowed))


def test_own_structures():
    class Pair(pb.Structure):
        def argmax(self, scores):
            return torch.zeros_like(scores).scatter(-1, scores.topk(2, dim=-1).indices, 1.0)

        def log_partition(self, scores):
            return scores[..., torch.combinations(torch.arange(scores.shape[-1]))].sum(-1).logsumexp(-1)

    scores, allowed = torch.randn(3, 5), torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    found = Pair().log_prob_within(scores, allowed)
    torch.testing.assert_close(found, pb.Subset(2).log_prob_within(scores, allowed))
    assert found[1] == -torch.inf
    torch.testing.assert_close(pb.StructureWrapper(Pair()).log_prob_within(scores, allowed), found)


def test_a_bad_example_without_validation_is_nan():
    """It is not an example none of whose structures are allowed."""
    scores, allowed = torch.zeros(3, 3, 4), torch.ones(3, 3, 4, dtype=torch.bool)
    allowed[0] = False
    ctc = pb.CTC([[1, 2], [1, 1], [1, 2]], lengths=[3, 2, 3], validate=False)
    found = ctc.log_prob_within(scores, allowed)
    assert found[0] == -torch.inf
    assert found.isnan().tolist() == [False, True, False]


def test_errors():
    with pytest.raises(TypeError, match=r"allowed has dtype torch.float32; it must be a mask"):
        pb.Categorical().log_prob_within(torch.zeros(3), torch.ones(3))
    with pytest.raises(ValueError, match="and allowed"):
        pb.Categorical().log_prob_within(torch.zeros(3), torch.ones(4, dtype=torch.bool))
    with pytest.raises(NotImplementedError, match=r"no `log_prob_within`: .*#P-hard"):
        pb.Matching().log_prob_within(torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool))
