"""Labelled segments that tile a sequence."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.front.family import Family
from pullback.inference.segmentation.family import SEGMENTATION
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import check_range, is_padding, ones_at, tuples


class Segmentation(FamilyStructure):
    """The segmentations of n positions, as 0/1 tensors `[..., n, W, C]` (a semi-Markov model of order 0).

    `z[i, w, c] = 1` for a segment that starts at position i, covers w + 1 positions and has label c. Segments tile
    the sequence. Scores have the same layout. Entries of segments that reach beyond the end are not parts: like
    padding they may hold anything, NaN included. A score of `-inf` forbids a segment. All operations take O(n W C).

    Ties in the argmax: from the end of the sequence on, the segment that starts first, then the first label.

    Args:
        lengths: the number of positions of each example, `[...]`. The default is n for all.
        transitions: scores for pairs of neighbouring labels, `[C, C]` or `[..., C, C]`, the former label first. They belong to
            the structure, have gradients, and count in everything but `allowed` and `contains`. There is no SparseMAP then.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> scores = torch.tensor([[[0.0], [3.0]], [[0.0], [0.0]], [[1.0], [0.0]]])   # n = 3, W = 2, C = 1
    >>> Segmentation().segments(Segmentation().argmax(scores))
    [(0, 2, 0), (2, 3, 0)]
    >>> segmentation = Segmentation(transitions=torch.tensor([[-9.0]]))   # no segment of this label behind another one
    >>> segmentation.segments(segmentation.argmax(torch.cat([scores, torch.zeros(3, 1, 1)], 1)))
    [(0, 3, 0)]
    """

    family: ClassVar[Family] = SEGMENTATION

    def __new__(cls, *args: Any, **options: Any) -> Segmentation:
        """With transitions, a `FactoredSegmentation`."""
        if cls is Segmentation and (len(args) > 1 or options.get("transitions") is not None):
            from pullback.structures.factored_segmentation import FactoredSegmentation

            if len(args) < 2 or args[1] is not None:
                return super().__new__(FactoredSegmentation)
        return super().__new__(cls)

    def __init__(self, lengths: Any = None, transitions: Tensor | None = None, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)
        if transitions is not None and self.family is SEGMENTATION:
            raise TypeError(f"{type(self).__name__} has no transitions: subclass FactoredSegmentation instead")
        self.lengths, self.transitions = self._as_lengths(lengths), transitions

    __new__.__signature__ = inspect.signature(__init__)  # type: ignore[attr-defined]  # what `help` shows of the class

    def segments(self, z: Tensor) -> list[Any]:
        """The segments of each structure, as lists of (start, end, label) with the end excluded, nested like the batch."""
        return self._listed(z, lambda start, width, label: (start, start + width + 1, label))

    def from_segments(self, segments: Any, n: int, W: int, C: int) -> Tensor:
        """The structures `[..., n, W, C]` of segments (start, end, label), the end excluded: the inverse of `segments`.

        Args:
            segments: lists of tuples, nested like the batch, or integers `[..., S, 3]`, with -1 or -100 for no segment.
            n: the number of positions.
            W: the largest number of positions of a segment.
            C: the number of labels.
        """
        x = tuples(segments, 3, "a Segmentation", "segments")
        start, end, label = x.unbind(-1)
        real, limit = ~is_padding(start), self._limit(x, n)
        check_range(start, real, limit - 1, "the start of segments", "it must be a position of the sequence")
        check_range(end, real, limit, "the end of segments", "a segment ends at most at the end of the sequence")
        check_range(end - start, real, W, "the width of segments", "it must be from 1 to W = {W}", least=1, W=W)
        check_range(label, real, C - 1, "the label of segments", "with C = {C} labels are from 0 to {last}", C=C, last=C - 1)
        return ones_at((start * W + end - start - 1) * C + label, real, n * W * C).reshape(*x.shape[:-2], n, W, C)

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
