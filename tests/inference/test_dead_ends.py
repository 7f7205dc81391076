"""Parts that no structure can have: an infinite or undefined direction there changes no derivative.

Losses such as the entropy of marginals have such directions where a marginal is 0.
"""

from __future__ import annotations

import pytest
import torch

import pullback as pb


def dead_ends() -> dict[str, tuple[pb.Structure, torch.Tensor]]:
    alignment, chain = torch.randn(2, 12, 11, dtype=torch.float64), torch.randn(2, 4, 9, 9, dtype=torch.float64)
    alignment[0, 1, 2], alignment[:, 9, 4:] = -torch.inf, -torch.inf
    chain[:, 2, 1, :], chain[0, 3, :, 5] = -torch.inf, -torch.inf
    tree = torch.randn(2, 4, 4, dtype=torch.float64)
    tree[0, 0, 1] = -torch.inf
    segments = torch.randn(2, 5, 2, 2, dtype=torch.float64)
    segments[0, 2] = -torch.inf
    return {
        "alignment": (pb.Alignment(), alignment), "chain": (pb.LinearChain(), chain),
        "binary tree": (pb.BinaryTree(), tree), "segmentation": (pb.Segmentation(), segments),
    }  # fmt: skip


@pytest.mark.parametrize("direction", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("case", dead_ends())
def test_a_direction_on_parts_without_probability_does_not_count(case, direction):
    torch.manual_seed(0)
    structure, scores = dead_ends()[case]
    leaf = scores.requires_grad_()
    mu = structure.marginals(leaf)
    assert (mu == 0).any()
    gamma = torch.randn_like(mu)
    (expected,) = torch.autograd.grad(mu, leaf, torch.where(mu == 0, 0.0, gamma), retain_graph=True)
    (found,) = torch.autograd.grad(mu, leaf, torch.where(mu == 0, direction, gamma))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("operation", ["log_partition", "marginals", "entropy", "sample", "argmax"])
@pytest.mark.parametrize("bits", [0x7FC00001, 0xFFC00001, 0x7F800001, 0x7FC00080, 0xFFFFFFFF])
def test_every_nan_is_an_error(bits, operation):
    """Whatever the bits of its payload are."""
    scores = torch.zeros(2, 3, 2, 2)
    scores.view(torch.int32)[1, 2, 1, 1] = bits - (1 << 32) if bits >> 31 else bits
    with pytest.raises(ValueError, match=r"sequence 1 .*NaN"):
        getattr(pb.LinearChain(), operation)(scores)


def test_every_nan_is_an_error_in_float64():
    for bits in (0x7FF8000000000001, 0x7FF0000000000001, -0x7FFFFFFFFFFFF):
        scores = torch.zeros(2, 3, 2, 2, dtype=torch.float64)
        scores.view(torch.int64)[1, 2, 1, 1] = bits
        assert scores[1, 2, 1, 1].isnan()
        with pytest.raises(ValueError, match=r"sequence 1 .*NaN"):
            pb.LinearChain().log_partition(scores)
