"""The alignment search of text to speech, against its definition by enumeration."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from pullback.nn import maximum_path


def _masked(tokens, frames, n, m):
    return (torch.arange(n) < tokens[:, None])[:, :, None] & (torch.arange(m) < frames[:, None])[:, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_the_path_is_the_best_of_all(dtype):
    tokens, frames = torch.tensor([3, 2, 1, 3]), torch.tensor([6, 5, 4, 3])
    mask = _masked(tokens, frames, 3, 6)
    value = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    path = maximum_path(value.masked_fill(~mask, torch.nan), mask.to(dtype))
    assert path.dtype == dtype
    assert not path.requires_grad
    for i, (n, m) in enumerate(zip(tokens.tolist(), frames.tolist(), strict=True)):
        z = pb.Alignment(moves="forward").enumerate(n, m)
        best = z[(z * value[i, :n, :m].detach().float()).flatten(1).sum(1).argmax()]
        assert torch.equal(path[i, :n, :m].float(), best)
        assert path[i].sum() == m
    assert torch.equal(maximum_path(value.detach(), mask), path)


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"example 1 of the batch .*more rows than columns"):
        maximum_path(torch.zeros(2, 3, 4), _masked(torch.tensor([3, 3]), torch.tensor([4, 2]), 3, 4))
    with pytest.raises(ValueError, match=r"value has shape \[2, 3, 4\] and mask \[2, 3\]"):
        maximum_path(torch.zeros(2, 3, 4), torch.ones(2, 3))
    with pytest.raises(ValueError, match="lengths is a mask with a hole"):
        maximum_path(torch.zeros(1, 3, 4), torch.tensor([1.0, 0.0, 1.0])[None, :, None].expand(1, 3, 4))
    assert maximum_path(torch.zeros(0, 3, 4), torch.zeros(0, 3, 4)).shape == (0, 3, 4)
