"""Gradients in float32 keep their digits in long sequences, where slopes add up to thousands before they cancel."""

from __future__ import annotations

import pytest
import torch

import pullback as pb

CASES = {
    "chain": (pb.LinearChain(), (600, 3, 3)),
    "segmentation": (pb.Segmentation(), (600, 3, 2)),
    "alignment": (pb.Alignment(), (150, 170)),
    "binary tree": (pb.BinaryTree(), (60, 60)),
}


GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))


@pytest.mark.parametrize("operation", ["entropy", "marginals"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("device", ["cpu", GPU])
def test_as_in_float64(case, operation, device):
    structure, parts = CASES[case]
    scores = torch.randn(2, *parts, generator=torch.Generator().manual_seed(0))
    direction = 100 + torch.randn(scores.shape, generator=torch.Generator().manual_seed(1))

    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        value = structure.entropy(x).sum() if operation == "entropy" else (structure.marginals(x) * direction.to(x)).sum()
        return torch.autograd.grad(value, x)[0].double().cpu()

    exact = gradient(scores.double())
    assert (gradient(scores.to(device)) - exact).abs().max() < 1e-5 * exact.abs().max()
