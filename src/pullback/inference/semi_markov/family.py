"""The family of segmentations with scores for pairs of neighbouring labels.

Its operators take one tensor per example, `[B, rows + n, W, C]`: the transitions `[C, C]` in the first rows, filled up with
zeros, and the scores of the segments behind them. So both have gradients, from one definition.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference.front.family import FUSED, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.front.operations import ARGMAX, GIBBS


def rows_of_transitions(widths: int, labels: int) -> int:
    """How many rows `[W, C]` the transitions take."""
    return -(-labels // widths) if widths else 0


def positions(shape: tuple[int, ...]) -> int:
    """n, from the shape `[..., rows + n, W, C]`."""
    return shape[-3] - rows_of_transitions(*shape[-2:])


class _Joined(Layout):
    """The layout of what the operators take."""

    def limit(self, index: int, shape: torch.Size) -> int | None:
        return positions(shape)


def _used(shape: tuple[int, ...], sizes: tuple[Tensor, ...], device: torch.device) -> Tensor:
    """Segments that end inside the sequence; transitions, if there are two positions."""
    rows, (_, widths, labels), length = rows_of_transitions(*shape[1:]), shape, sizes[0][:, None, None]
    row, width = torch.arange(shape[0], device=device)[:, None], torch.arange(widths, device=device)
    transitions = (row < rows) & (row * widths + width < labels) & (length > 1)
    return (transitions | ((row >= rows) & (row - rows + width < length)))[..., None]


def most_parts(shape: tuple[int, ...]) -> int:
    """Of a structure with a segment for each position: those, and the transitions between them."""
    return max(2 * positions(shape) - 1, 0)


LAYOUT = _Joined("Segmentation", "rows, W, C", sizes=(Size("lengths", bounds=None),), parts=_used)


def _implementations(backend: str) -> Any:
    """The engine on the CPU. Its kernels for a GPU have not run on this hypergraph: there, the reference serves."""
    if backend == "cuda":
        return None
    from pullback.inference.engine.hypergraph.backends import functions
    from pullback.inference.semi_markov.reference import graph, value

    return functions(backend, LAYOUT, graph, value, most_parts)


SEMI_MARKOV = Family(
    "semi_markov",
    LAYOUT,
    implementations=_implementations,
    nouns=Nouns(
        example="sequence", structure="segmentation", part="segment",
        infeasible="too many segments or transitions are forbidden (-inf), or W is 0",
    ),
    operations=(*ARGMAX, *GIBBS, *FUSED),
    most_parts=most_parts,
)  # fmt: skip
