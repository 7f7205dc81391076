"""The family of segmentations: a tiling of n positions by labelled segments of at most W positions."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP_ON_PATHS


def _inside(shape: tuple[int, ...], sizes: tuple[Tensor, ...], device: torch.device) -> Tensor:
    """Segments that end inside the sequence: start + width <= length."""
    (lengths,) = sizes
    last = torch.arange(shape[0], device=device)[:, None] + torch.arange(shape[1], device=device)
    return (last < lengths[:, None, None])[..., None]


SEGMENTATION = Family(
    "segmentation",
    Layout("Segmentation", "n, W, C", sizes=(Size("lengths", bounds="n"),), parts=_inside),
    folder="segmentation",
    nouns=Nouns(
        example="sequence",
        structure="segmentation",
        part="segment",
        infeasible="too many {part}s are forbidden (-inf), or W or C is 0",
    ),
    operations=STANDARD + FUSED + SPARSEMAP_ON_PATHS,
    most_parts=lambda shape: shape[0],
)
