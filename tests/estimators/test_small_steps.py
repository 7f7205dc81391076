"""A projected step that is far smaller than one is as exact, for its size, as a large one."""

from __future__ import annotations

import pytest
import torch

import pullback as pb


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("projective", [True, False])
def test_spigot_in_float32_has_the_gradient_of_float64(projective: bool, steps: int) -> None:
    generator = torch.Generator().manual_seed(0)
    scores, cost = (torch.randn(4, 9, 9, generator=generator) for _ in range(2))
    structure = pb.DependencyTree(torch.tensor([9, 7, 9, 1]), projective)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        s = scores.detach().to(dtype).requires_grad_()
        losses = pb.SPIGOT(step_size=1e-5, steps=steps).objective(structure, s, lambda z: (z * cost).sum((-2, -1)))
        losses.sum().backward()
        gradients.append(s.grad)
    found, expected = gradients
    assert expected.abs().max() < 1e-3
    error = (found - expected).abs().amax()
    assert error < 1e-5 * expected.abs().amax()
