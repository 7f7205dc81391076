"""The family of tag sequences: a linear chain of n positions with one of C tags each."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP_ON_PATHS


def _first_row(shape: tuple[int, ...], sizes: tuple[Tensor, ...], device: torch.device) -> Tensor:
    """At position 0 there is no tag before: only row 0 exists."""
    position, before = torch.arange(shape[0], device=device)[:, None], torch.arange(shape[1], device=device)
    return ((position > 0) | (before == 0))[None, :, :, None]


CHAIN = Family(
    "chain",
    Layout("LinearChain", "n, C, C", sizes=(Size("lengths", bounds="n"),), parts=_first_row, centre=(-2, -1), positive="C"),
    folder="chain",
    nouns=Nouns(example="sequence", structure="tag sequence", part="transition"),
    operations=STANDARD + FUSED + SPARSEMAP_ON_PATHS,
    most_parts=lambda shape: shape[0],
)
