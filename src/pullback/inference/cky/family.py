"""The family of binary trees over n words, as their spans."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP


def _spans(shape: tuple[int, ...], sizes: tuple[Tensor, ...], device: torch.device) -> Tensor:
    return torch.ones(1, *shape, dtype=torch.bool, device=device).triu()


BINARY_TREE = Family(
    "binary_tree",
    Layout("BinaryTree", "n, n", sizes=(Size("lengths", bounds="n"),), parts=_spans),
    folder="cky",
    nouns=Nouns(example="sentence", structure="binary tree", part="span"),
    operations=STANDARD + FUSED + SPARSEMAP,
    most_parts=lambda shape: max(2 * shape[0] - 1, 0),
)
