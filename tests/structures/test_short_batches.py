"""Batches in which no example is as long as the tensor: the same results as of tensors that are cut to the lengths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pullback as pb
from each import each
from pullback.inference.front.family import backend

# how to make the structure for sizes, the shape of the parts, and the sizes of the examples: one for each axis in `axes`
CASES = {
    "chain": (pb.LinearChain, (6, 3, 3), ((3,), (2,)), (0,)),
    "subset": (lambda lengths=None: pb.Subset(2, lengths), (6,), ((3,), (2,)), (0,)),
    "segmentation": (pb.Segmentation, (6, 4, 2), ((3,), (2,)), (0,)),
    "binary": (pb.BinaryTree, (6, 6), ((3, 3), (2, 2)), (0, 1)),
    "alignment": (pb.Alignment, (5, 6), ((3, 2), (2, 4)), (0, 1)),
    "forward": (lambda *sizes: pb.Alignment(*sizes, moves="forward"), (5, 6), ((2, 3), (2, 4)), (0, 1)),
    "matching": (pb.Matching, (5, 6), ((2, 3), (2, 4)), (0, 1)),
}
OPERATIONS = ["argmax", "marginals", "log_partition", "entropy"]


def _dirty(like: Tensor) -> None:
    """Leave numbers in memory that is freed: who reads it without having written to it gets them."""
    for size in range(1, 200):
        torch.full((size * 16,), 1e9, dtype=like.dtype)


def _with_gradient(structure: pb.Structure, operation: str, scores: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    result = getattr(structure, operation)(leaf)
    if operation == "argmax":
        return result, torch.zeros_like(scores)
    (result if result.dim() == 1 else result * weights).sum().backward()
    assert leaf.grad is not None
    return result.detach(), leaf.grad


@each("dtype", [torch.float32, torch.float64])
@each("name", ["reference", "cpu"])
@pytest.mark.parametrize("case", list(CASES))
def test_short_batches_are_cut_ones(case, name, dtype):
    make, shape, sizes, axes = CASES[case]
    generator = torch.Generator().manual_seed(3)
    scores, weights = torch.randn(2, len(sizes), *shape, generator=generator, dtype=torch.float64).to(dtype)
    columns = [torch.tensor(column) for column in zip(*sizes, strict=True)]
    structure = make(*columns[: 1 if case == "binary" else None])
    with backend(name):
        for operation in OPERATIONS if case != "matching" else ["argmax"]:
            _dirty(scores)
            found = _with_gradient(structure, operation, scores, weights)
            for b, size in enumerate(sizes):
                inside = [slice(b, b + 1), *[slice(None)] * len(shape)]
                for axis, length in zip(axes, size, strict=True):
                    inside[1 + axis] = slice(0, length)
                cut = tuple(inside)
                for whole, own in zip(found, _with_gradient(make(), operation, scores[cut], weights[cut]), strict=True):
                    expected = own
                    if own.dim() > 1:
                        expected = torch.zeros_like(scores)
                        expected[cut] = own
                        expected = expected[b : b + 1]
                    torch.testing.assert_close(whole[b : b + 1], expected)
