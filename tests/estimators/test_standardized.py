"""`Standardized` and `Entmax`: centred and scaled scores, sparse averages; masks, padding, half precision."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import Tensor

import pullback as pb
from estimators.worlds import World, surrogate


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_scores_are_centred_in_groups_and_have_norm_one(world: World, center: bool, scale: bool) -> None:
    wrapped = pb.Standardized(pb.STEIdentity(), center, scale)
    found = wrapped.standardize(world.structure, world.scores)
    known = torch.where(world.allowed, found, 0.0)
    if center:
        assert world.groups(known).abs().max() < 1e-12
    if scale:
        norm = known.flatten(-world.structure.event_dims).norm(dim=-1)
        assert ((norm - 1).abs() < 1e-12).logical_or(norm == 0).all()
    torch.testing.assert_close(found[~world.allowed], world.scores[~world.allowed], equal_nan=True)
    torch.testing.assert_close(world.structure.argmax(found), world.structure.argmax(world.scores))


@pytest.mark.parametrize("structure", [pb.Categorical(), pb.DependencyTree()], ids=repr)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
def test_equal_scores_become_zero_and_stay_trainable(structure: pb.Structure, value: float) -> None:
    scores = torch.full((1, *(7,) * structure.event_dims), value, requires_grad=True)  # 0.1 less the mean of 7 is not 0
    wrapped = pb.Standardized(pb.STEIdentity())
    assert (wrapped.standardize(structure, scores) == 0).all()
    wrapped.objective(structure, scores, lambda z: z.flatten(1)[:, 0]).sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.abs().sum() > 0


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_norm_neither_overflows_nor_underflows(size: float) -> None:
    scores = size * torch.tensor([[3.0, 0.0, -4.0]])
    found = pb.Standardized(pb.STEIdentity(), center=False).standardize(pb.Categorical(), scores)
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.0, -0.8]]))


MASKS = [-1e9, -1e30, torch.finfo(torch.float64).min]
MASKED = [
    pb.Standardized(pb.STEIdentity()),
    pb.Standardized(pb.Marginals(), center=False),
    pb.Standardized(pb.Marginals(), scale=False),
    pb.AdaptiveIMLE(rate=0.5),
    pb.AdaptiveIMLE(samples=3, symmetric=True),
]


def _with_mask(world: World, mask: float) -> World:
    """The world with a large finite mask in the place of -inf."""
    return dataclasses.replace(world, scores=torch.where(world.scores == -torch.inf, mask, world.scores))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("estimator", MASKED, ids=repr)
def test_large_finite_masks_act_like_minus_infinity(world: World, estimator: pb.Estimator, mask: float) -> None:
    found = []
    for each in (world, _with_mask(world, mask)):
        torch.manual_seed(0)
        own = copy.deepcopy(estimator)
        found.append((surrogate(own, each, world.decoder()), own.predict(each.structure, each.scores), own.state_dict()))
    torch.testing.assert_close(found[1], found[0])
    assert (found[1][0][world.scores == -torch.inf] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_smallest_number_is_a_mask_in_every_dtype(dtype: torch.dtype) -> None:
    scores = torch.tensor([[3.0, -5.0, torch.finfo(dtype).min, -3.0, 1.0]], dtype=dtype, requires_grad=True)
    found = pb.Standardized(pb.STEIdentity()).standardize(pb.Categorical(), scores)
    expected = torch.tensor([[4.0, -4.0, 0.0, -2.0, 2.0]]) / 40**0.5
    torch.testing.assert_close(found[:, [0, 1, 3, 4]].float(), expected[:, [0, 1, 3, 4]], rtol=0, atol=4e-3)
    assert found[0, 2] == torch.finfo(dtype).min
    found.float()[:, 2].sum().backward()
    assert (scores.grad == 0).all()


@pytest.mark.parametrize(
    "scores", [[3e6, 0.0, -4e6], [3e9, 0.0, -4e9], [-3e9, -3e9, -3e9 - 4096]], ids=["1e6", "1e9", "nothing else"]
)
def test_large_scores_are_no_masks(scores: list[float]) -> None:
    found = pb.Standardized(pb.STEIdentity()).standardize(pb.Categorical(), torch.tensor([scores], dtype=torch.float64))
    centred = torch.tensor(scores, dtype=torch.float64) - sum(scores) / 3
    torch.testing.assert_close(found[0], centred / centred.norm())


def _entmax(scores: Tensor, alpha: float) -> Tensor:
    """By bisection on the normaliser, one row at a time, in Python."""
    low, high = scores.max() * (alpha - 1) - 1, scores.max() * (alpha - 1)
    for _ in range(200):
        tau = (low + high) / 2
        p = (scores * (alpha - 1) - tau).clamp_min(0) ** (1 / (alpha - 1))
        low, high = (tau, high) if p.sum() >= 1 else (low, tau)
    return p


@pytest.mark.parametrize("alpha", [1.1, 1.5, 1.75, 2.0, 3.0])
def test_entmax(alpha: float) -> None:
    scores = 2 * torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = pb.Entmax(alpha)(pb.Categorical(), scores)
    torch.testing.assert_close(found, torch.stack([_entmax(row, alpha) for row in scores]), rtol=1e-8, atol=1e-10)
    leaf = scores.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: pb.Entmax(alpha)(pb.Categorical(), s), leaf, check_forward_ad=True)


def test_entmax_at_two_is_sparsemax_and_near_one_softmax() -> None:
    scores = torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(pb.Entmax(2.0)(pb.Categorical(), scores), pb.Categorical().sparsemap(scores))
    torch.testing.assert_close(pb.Entmax(1.0001)(pb.Categorical(), scores), scores.softmax(-1), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("alpha", [1.5, 1.7])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_entmax_with_forbidden_classes_large_scores_and_half_precision(alpha: float, dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, -torch.inf, 0.5], [6e4, 0.0, -6e4], [0.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    p = pb.Entmax(alpha)(pb.Categorical(), scores)
    assert p.dtype == dtype
    assert p[0, 1] == 0
    assert p[1].tolist() == [1.0, 0.0, 0.0]
    torch.testing.assert_close(p.float().sum(-1), torch.ones(3), rtol=0, atol=5e-3)
    p[:, 0].float().sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 1] == 0


def test_entmax_checks_its_scores() -> None:
    with pytest.raises(ValueError, match="NaN"):
        pb.Entmax()(pb.Categorical(), torch.tensor([[torch.nan, 0.0]]))
    with pytest.raises(ValueError, match="forbids every class"):
        pb.Entmax()(pb.Categorical(), torch.full((1, 2), -torch.inf))


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 3e-6])
def test_nearly_equal_scores_are_not_taken_for_equal_ones(spread: float) -> None:
    """Float32 tells 1 from 1 + 3e-6, and so must the norm."""
    scores = 1 + spread * torch.tensor([[0.0, 1.0, -1.0]])
    found = pb.Standardized(pb.STEIdentity()).standardize(pb.Categorical(), scores)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.5, -0.5]]).mul(2**0.5), atol=0.05, rtol=0)
