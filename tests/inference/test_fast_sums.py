"""Kernels that leave logarithms where they can: every example is right, in range or not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pullback as pb
from each import each
from pullback.inference._numba.compile import kernel
from pullback.inference._numba.lanes import lanes_in, load, store
from pullback.inference.chain.exponential import exp_or_nan
from pullback.inference.front.family import backend


def _alignment(lengths=None, **options):
    return pb.Alignment(lengths, lengths, **options)


def _subset(lengths=None, **options):
    return pb.Subset(3 if lengths is None else lengths // 2, lengths, **options)


STRUCTURES = {
    "chain of many tags": (pb.LinearChain, (4, 19, 19)),
    "chain of few tags": (pb.LinearChain, (6, 3, 3)),
    "binary tree": (pb.BinaryTree, (9, 9)),
    "alignment": (_alignment, (18, 21)),
    "subset": (_subset, (23,)),
}


def _scores(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Examples of very different scales, some with forbidden and with masked parts, and one that is all alike."""
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(20, *shape, generator=generator, dtype=torch.float64)
    scale = torch.tensor([0.0, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e6, 1.0] * 2, dtype=torch.float64)
    scores = scores * scale.reshape(-1, *[1] * len(shape))
    rare = torch.rand(scores.shape, generator=generator) < 0.05
    scores[9] = torch.where(rare[9], -torch.inf, scores[9])
    scores[12] = torch.where(rare[12], -1e30, scores[12])
    scores[13] += 1e5
    return scores.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", STRUCTURES)
def test_sums_of_all_scales_at_once(name, dtype):
    make, shape = STRUCTURES[name]
    lengths = torch.tensor([shape[0], shape[0] - 1, 1, 0] * 5)
    scores = _scores(shape, dtype)
    leaf, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
    direction = torch.randn(scores.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    structure = make(lengths, validate=False)
    with backend("reference"):
        wanted = structure.log_partition(exact), structure.marginals(exact)
        (slope,) = torch.autograd.grad(wanted[1], exact, direction)
    log_z, mu = structure.log_partition(scores), structure.marginals(leaf)
    (found,) = torch.autograd.grad(mu, leaf, direction.to(dtype))
    single = dtype == torch.float32
    torch.testing.assert_close(log_z.double(), wanted[0], rtol=1e-6 if single else 1e-12, atol=1e-5 if single else 1e-9)
    torch.testing.assert_close(mu.double(), wanted[1], rtol=0, atol=2e-5 if single else 1e-9)
    torch.testing.assert_close(found.double(), slope, rtol=1e-4 if single else 1e-7, atol=2e-4 if single else 1e-8)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_kept_gradient_may_be_used_again(name):
    make, shape = STRUCTURES[name]
    scores = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    structure = make()
    z, mu = structure.argmax(scores), structure.marginals(scores.detach())
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    factor = weights.reshape(-1, *[1] * len(shape))
    log_z, log_p = structure.log_partition(scores), structure.log_prob(scores, z)
    for value, slope in ((log_z, mu), (log_p, z - mu)):
        for keep in (True, True, False):
            (found,) = torch.autograd.grad(value, scores, weights, retain_graph=keep)
            torch.testing.assert_close(found, factor * slope)
            found.zero_()


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_curvature_of_log_prob(name):
    make, shape = STRUCTURES[name]
    scores = torch.randn(2, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    structure, direction = (
        make(),
        torch.randn(2, *shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64),
    )
    value = structure.log_prob(scores, structure.argmax(scores))
    (slope,) = torch.autograd.grad(value.sum(), scores, create_graph=True)
    (found,) = torch.autograd.grad(slope, scores, direction)
    (wanted,) = torch.autograd.grad(structure.marginals(scores), scores, -direction)
    torch.testing.assert_close(found, wanted)


@each("dtype", [torch.float32, torch.float64])
@each("tags", [*range(1, 18), 20, 23, 24, 31])
def test_any_number_of_tags(tags, dtype):
    scores = torch.randn(3, 4, tags, tags, generator=torch.Generator().manual_seed(tags), dtype=torch.float64)
    chain = pb.LinearChain(torch.tensor([4, 3, 1]))
    z = chain.argmax(scores)
    with backend("reference"):
        wanted = chain.marginals(scores), chain.log_prob(scores, z)
    leaf = scores.to(dtype).requires_grad_()
    value = chain.log_prob(leaf, z.to(dtype))
    (slope,) = torch.autograd.grad(value.sum(), leaf)
    tolerance = {"rtol": 0.0, "atol": 2e-6 if dtype == torch.float32 else 1e-13}
    torch.testing.assert_close(chain.marginals(leaf).double(), wanted[0], **tolerance)
    torch.testing.assert_close(value.double(), wanted[1], rtol=0.0, atol=5 * tolerance["atol"])
    torch.testing.assert_close(slope.double(), z - wanted[0], **tolerance)


def _exponentials(x, out):
    for p in range(0, len(x), lanes_in(x)):
        store(out, p, exp_or_nan(load(x, p)))


@pytest.mark.parametrize(("dtype", "lowest", "close"), [(np.float32, -87, 1e-7), (np.float64, -708, 3e-16)])
def test_exponentials_of_scores(dtype, lowest, close):
    x = np.linspace(lowest, 60, 2**12).astype(dtype)
    x[:8] = 0.0, -0.0, lowest - 1, -1e30, -np.inf, np.nan, 1e-3, -1e-3
    found = np.empty_like(x)
    kernel(_exponentials)(x, found)
    assert (found[:2] == 1).all()
    assert (found[2:5] == 0).all()
    assert np.isnan(found[5])
    wanted = np.exp(x[6:].astype(np.longdouble))
    assert (abs(found[6:] / wanted - 1) < close * (2 + abs(x[6:]) / 4)).all()


def test_log_prob_of_padding_and_of_forbidden_parts():
    chain = pb.LinearChain(torch.tensor([2, 3]))
    scores = torch.zeros(2, 3, 2, 2)
    scores[0, 2], scores[:, 0, 1] = torch.nan, torch.nan
    scores[1, 1, 0, 1] = -torch.inf
    z = chain.from_tags(torch.tensor([[0, 1, 0], [0, 1, 1]]), C=2)
    found = chain.log_prob(scores.requires_grad_(), z)
    torch.testing.assert_close(found, torch.tensor([-1.3862943611, -torch.inf]))
    (slope,) = torch.autograd.grad(found[0], scores)
    assert slope.isfinite().all()
    assert (slope[0, 2] == 0).all()
    assert (slope[:, 0, 1] == 0).all()
