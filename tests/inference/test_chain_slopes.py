"""Entropies, backward passes and samples of chains by the CPU's kernels, for numbers of tags around a vector's lanes."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from pullback.inference.front.family import backend


def results(scores: torch.Tensor, on: str) -> dict[str, torch.Tensor]:
    with backend(on):
        structure = pb.LinearChain(torch.tensor([5, 3, 0, 1]))
        leaf = scores.clone().requires_grad_()
        mu, nats = structure.marginals(leaf), structure.entropy(leaf)
        direction = torch.linspace(4, 6, mu.numel(), dtype=mu.dtype).reshape(mu.shape)
        found = {"entropy": nats, "slope": torch.autograd.grad(mu, leaf, direction)[0]}
        found["entropy's slope"] = torch.autograd.grad(nats.sum(), leaf)[0]
        return {name: x.detach() for name, x in found.items()}


@pytest.mark.parametrize("scale", [1.0, 1e3], ids=["ordinary", "very mixed"])
@pytest.mark.parametrize("tags", [1, 2, 7, 8, 9, 17, 33])
def test_as_the_reference(tags, scale):
    """Scores of 1000 make the sums' careful steps; a mask forbids a tag in the middle."""
    scores = scale * torch.randn(4, 5, tags, tags, generator=torch.Generator().manual_seed(tags), dtype=torch.float64)
    if tags > 1:
        scores[0, 2, :, 0], scores[1, 1, 0, :] = -torch.inf, -1e30
    scores[1, 3:], scores[2], scores[3, 1:], scores[:, 0, 1:] = torch.nan, torch.nan, torch.nan, torch.nan
    expected = results(scores, "reference")
    for name, x in results(scores, "cpu").items():
        torch.testing.assert_close(x, expected[name], msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["ordinary", "very mixed"])
@pytest.mark.parametrize("tags", [3, 17])
def test_samples_are_as_frequent_as_their_marginals_say(tags, scale):
    draws, structure = 4000, pb.LinearChain()
    scores = scale * torch.randn(1, 4, tags, tags, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[0, 2, 1] = -torch.inf
    z = structure.sample(scores.expand(draws, -1, -1, -1), torch.Generator().manual_seed(1))
    assert (z.sum((2, 3)) == 1).all()
    assert structure.log_prob(scores.expand_as(z), z).isfinite().all()
    mu = structure.marginals(scores)[0]
    assert ((z.mean(0) - mu).abs() < 5 * (mu * (1 - mu) / draws + 1e-9).sqrt()).all()
