"""The family of tag sequences whose emissions and transitions are apart.

Its operators take one tensor per example, `[B, n + 2 + C, C]`, with all that adds to the score of a sequence: the emissions of
the n positions, start, end, and a row of transitions for each tag. So each of them has a gradient, from one definition.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.family import FUSED, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.front.operations import ARGMAX, GIBBS


def positions(shape: tuple[int, ...]) -> int:
    """n, from the shape `[..., n + 2 + C, C]`."""
    return shape[-2] - shape[-1] - 2


class _Joined(Layout):
    """The layout of what the operators take."""

    def limit(self, index: int, shape: torch.Size) -> int | None:
        return positions(shape)


def _used(shape: tuple[int, ...], sizes: tuple[Tensor, ...], device: torch.device) -> Tensor:
    """Start and end belong to sequences of a position or more, transitions to those of two."""
    n, length, row = positions(shape), sizes[0][:, None], torch.arange(shape[0], device=device)
    return torch.where(row < n, row < length, length > (row >= n + 2))[:, :, None]


FACTORED = Family(
    "factored_chain",
    _Joined("FactoredChain", "rows, C", sizes=(Size("lengths", bounds=None),), parts=_used),
    folder="factored",
    nouns=Nouns(
        example="sequence", structure="tag sequence", part="tag",
        infeasible="too many tags or transitions are forbidden (-inf)",
    ),
    operations=(*ARGMAX, *GIBBS, *FUSED), most_parts=lambda shape: 2 * positions(shape) + 1,
)  # fmt: skip
EMISSIONS = Layout("FactoredChain", "n, C", sizes=(Size("lengths", bounds="n"),), centre=(-1,), positive="C")
"""The layout of the scores of a structure."""
