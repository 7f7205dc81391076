"""Noises: their distributions, the derivative of their log-density, and where they are made."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import pullback as pb
from pullback.parts import Gumbel, Normal, SumOfGamma

NOISES = [Gumbel(), Normal(), SumOfGamma(3), SumOfGamma(torch.tensor([[2.0], [5.0]]), terms=4)]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shape_dtype_and_values(noise: Gumbel, dtype: torch.dtype) -> None:
    found = noise(torch.zeros(2, 1000, dtype=dtype))
    assert found.shape == (2, 1000)
    assert found.dtype == dtype
    assert found.isfinite().all()


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_noise_is_made_on_the_device_of_the_scores(noise: Gumbel) -> None:
    """torch-imle makes its noise on the CPU unless told otherwise."""
    try:
        drawn = noise(torch.zeros(2, 3, device="meta"))
    except NotImplementedError:
        pytest.skip("this PyTorch has no gamma noise on the meta device")
    assert drawn.device.type == "meta"


def test_gumbel_quantiles() -> None:
    torch.manual_seed(0)
    noise = Gumbel()(torch.zeros(200_000, dtype=torch.float64))
    for quantile in (0.01, 0.5, 0.99):
        value = -math.log(-math.log(quantile))
        assert (noise <= value).double().mean().item() == pytest.approx(quantile, abs=0.004)


def test_sum_of_gamma_adds_up_to_gumbel_noise() -> None:
    torch.manual_seed(0)
    k = 4
    noise = SumOfGamma(k, terms=200)(torch.zeros(50_000, k, dtype=torch.float64))
    assert noise.var().item() == pytest.approx(math.pi**2 / (6 * k), rel=0.02)
    total = noise.sum(-1)
    for quantile in (0.05, 0.5, 0.95):
        value = -math.log(-math.log(quantile))
        assert (total <= value).double().mean().item() == pytest.approx(quantile, abs=0.01)


@pytest.mark.parametrize("terms", [1, 10])
def test_sum_of_gamma_has_the_mean_of_its_formula(terms: int) -> None:
    torch.manual_seed(0)
    noise = SumOfGamma(3, terms)(torch.zeros(300_000, dtype=torch.float64))
    expected = (sum(1 / i for i in range(1, terms + 1)) - math.log(terms)) / 3
    assert noise.mean().item() == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("noise", [Gumbel(), Normal()], ids=repr)
def test_score_is_minus_the_derivative_of_the_log_density(noise: Gumbel) -> None:
    g = torch.linspace(-2, 4, 7, dtype=torch.float64, requires_grad=True)
    density = torch.exp(-g - torch.exp(-g)) if isinstance(noise, Gumbel) else torch.exp(-g * g / 2)
    (expected,) = torch.autograd.grad(-density.log().sum(), g)
    torch.testing.assert_close(noise.score(g.detach()), expected)


@pytest.mark.parametrize("noise", [SumOfGamma(2), torch.randn_like], ids=["SumOfGamma", "function"])
def test_a_noise_without_a_score_is_refused_where_it_is_needed(noise: object) -> None:
    with pytest.raises(TypeError, match=r"has no score\(g\).*use Gumbel\(\) or Normal\(\), or IMLE"):
        pb.PerturbedArgmax(noise=noise)
    pb.IMLE(1.0, noise=noise).objective(pb.Categorical(), torch.zeros(2, 3, requires_grad=True), lambda z: z[:, 0])


def test_wrong_noises_say_so() -> None:
    with pytest.raises(TypeError, match=r"noise is 0.5; it must be a callable"):
        pb.IMLE(1.0, noise=0.5)
    with pytest.raises(ValueError, match=r"returned shape \[\] for scores of shape \[2, 3\]"):
        pb.IMLE(1.0, noise=lambda scores: torch.zeros(())).objective(pb.Categorical(), torch.zeros(2, 3), _first)


def test_none_is_gumbel() -> None:
    assert pb.IMLE(1.0) == pb.IMLE(1.0, noise=Gumbel())
    assert pb.IMLE(1.0) != pb.IMLE(1.0, noise=Normal())
    assert pb.Estimator.from_dict(pb.IMLE(1.0, noise=SumOfGamma(3)).to_dict()) == pb.IMLE(1.0, noise=SumOfGamma(3))
    assert repr(pb.IMLE(1.0)) == "IMLE(step_size=1.0, temperature=1.0, samples=1)"


def _first(z: Tensor) -> Tensor:
    return z[:, 0]
