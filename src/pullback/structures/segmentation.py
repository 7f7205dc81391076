"""Labelled segments that tile a sequence."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.family import Family
from pullback.inference.layout import as_sizes
from pullback.inference.segmentation.family import SEGMENTATION
from pullback.structures.family import FamilyStructure


class Segmentation(FamilyStructure):
    """The segmentations of n positions, as 0/1 tensors `[..., n, W, C]` (a semi-Markov model of order 0).

    `z[i, w, c] = 1` for a segment that starts at position i, covers w + 1 positions and has label c. Segments tile
    the sequence. Scores have the same layout. Entries of segments that reach beyond the end are not parts: like
    padding they may hold anything, NaN included. A score of `-inf` forbids a segment. All operations take O(n W C).

    Ties in the argmax: from the end of the sequence on, the segment that starts first, then the first label.

    Args:
        lengths: the number of positions of each example, `[...]`. The default is n for all.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> scores = torch.tensor([[[0.0], [3.0]], [[0.0], [0.0]], [[1.0], [0.0]]])   # n = 3, W = 2, C = 1
    >>> Segmentation().segments(Segmentation().argmax(scores))
    [(0, 2, 0), (2, 3, 0)]
    """

    family: ClassVar[Family] = SEGMENTATION

    def __init__(self, lengths: Any = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        self.lengths = as_sizes(lengths, "lengths")

    def segments(self, z: Tensor) -> list[Any]:
        """The segments of each structure, as lists of (start, end, label) with the end excluded, nested like the batch."""
        return self._listed(z, lambda start, width, label: (start, start + width + 1, label))

    def enumerate(self, n: int, W: int, C: int) -> Tensor:  # type: ignore[override]
        """All segmentations, `[S, n, W, C]`, by trying every first segment; n up to 8 or so."""
        found = list(_tilings(0, n, W, C))
        return torch.stack(found) if found else torch.zeros(0, n, W, C)


def _tilings(start: int, n: int, widths: int, labels: int) -> Any:
    if start == n:
        yield torch.zeros(n, widths, labels)
        return
    for width in range(min(widths, n - start)):
        for rest in _tilings(start + width + 1, n, widths, labels):
            for label in range(labels):
                z = rest.clone()
                z[start, width, label] = 1.0
                yield z
