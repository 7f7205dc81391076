"""Segmentations with scores for pairs of neighbouring labels: `Segmentation(transitions=...)`."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat
from pullback.inference.segmentation.family import SEGMENTATION
from pullback.inference.semi_markov.family import SEMI_MARKOV, rows_of_transitions
from pullback.structures.family import _is_constant
from pullback.structures.own_scores import OwnScores, bilinear, check_own, for_each
from pullback.structures.segmentation import Segmentation
from pullback.structures.top import TopK, check_count, from_parts

_PAIRS = (
    "a Segmentation with transitions has no `sparsemap`: the score of a segmentation is not linear in its segments. Use "
    "Segmentation(lengths), whose score is, or a DynamicProgram whose parts are segments with the label before them"
)


class FactoredSegmentation(OwnScores, Segmentation):
    """A `Segmentation` with transitions; see there."""

    family: ClassVar[Family] = SEMI_MARKOV
    missing: ClassVar[dict[str, str]] = {"sparsemap": _PAIRS}
    own: ClassVar[tuple[str, ...]] = ("transitions",)
    transitions: Tensor
    _layout = SEGMENTATION.layout

    def __init__(self, lengths: Any = None, transitions: Tensor | None = None, *, validate: bool | None = None) -> None:
        super().__init__(lengths, transitions, validate=validate)
        check_own(transitions, "a Segmentation", "transitions")
        assert transitions is not None
        labels = transitions.shape[-1] if transitions.dim() else 0
        if transitions.dim() < 2 or transitions.shape[-2] != labels or labels == 0:
            raise ValueError(f"transitions has shape {list(transitions.shape)}; a Segmentation needs [..., C, C] with C > 0")

    def contains(self, z: Tensor) -> Tensor:
        """Whether the segments of z tile the sequence, `[...]` of bool."""
        return self._without().contains(z)

    def topk(self, scores: Tensor, k: int) -> TopK:
        k = check_count(k)
        if k == 1:
            return super().topk(scores, k)
        flat = self._flat(scores)
        found = from_parts(self._join(flat), *self._call("topk", flat, k))
        return TopK(found.scores, lambda: found.structures.narrow(-3, -scores.shape[-3], scores.shape[-3]))

    def _without(self) -> Segmentation:
        found = Segmentation(self.lengths, validate=self.validate)
        found._widths = self._widths
        return found

    def _are_targets(self, mu: Tensor) -> Tensor:
        return self._without()._are_targets(mu)

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        if z.shape != scores.shape or not (_is_constant(scores, z) and _is_constant(self.transitions, z)):
            return super()._log_prob(scores, z)
        flat = self._flat(scores)
        used = self._cleaned(z).to(flat.scores.dtype).reshape(flat.scores.shape)
        ending, starting = _neighbours(used)
        return flat.restore(self._call("log_prob", flat, _join(ending.mT @ starting, used))[0])

    def _own_score(self, scores: Tensor, z: Tensor) -> Tensor:
        """The score by transitions: bilinear in the segments that end where others start."""
        z = self._cleaned(z.expand(torch.broadcast_shapes(scores.shape, z.shape))).double()
        ending, starting = _neighbours(z)
        return bilinear(ending, self.transitions, starting).sum(-1)

    def _joined(self, flat: Flat) -> Tensor:
        """Transitions and scores of each example, `[B, rows + n, W, C]`."""
        s = flat.scores
        if self.transitions.shape[-1] != s.shape[-1]:
            raise ValueError(
                f"scores has shape {list(s.shape)}; transitions {list(self.transitions.shape)} need [..., n, W, C] with C = "
                f"{self.transitions.shape[-1]}"
            )
        transitions = for_each(self.transitions, flat, 2)
        dtype = torch.promote_types(s.dtype, transitions.dtype)
        return _join(transitions.to(dtype), s.to(dtype))

    def _apart(self, joined: Tensor, flat: Flat) -> Tensor:
        return joined[:, rows_of_transitions(*flat.scores.shape[2:]) :]


def _join(pairs: Tensor, segments: Tensor) -> Tensor:
    """`[B, C, C]` in front of `[B, n, W, C]`."""
    widths, labels = segments.shape[2:]
    rows = rows_of_transitions(widths, labels)
    if rows == 0:  # no segment has a width
        return segments
    first = pad(pairs.flatten(1), (0, (rows * widths - labels) * labels))
    return torch.cat([first.unflatten(1, (rows, widths, labels)), segments], 1)


def _neighbours(z: Tensor) -> tuple[Tensor, Tensor]:
    """The labels of segments that end, and of those that start, at each of the places between positions, `[..., n - 1, C]`."""
    n, widths = z.shape[-3:-1]
    end, width = torch.arange(1, max(n, 1), device=z.device)[:, None], torch.arange(widths, device=z.device)
    start = end - 1 - width
    place = start.clamp_min(0) * widths + width
    ending = z.flatten(-3, -2).index_select(-2, place.flatten()).unflatten(-2, place.shape)
    return torch.where((start >= 0)[..., None], ending, 0.0).sum(-2), z.sum(-2)[..., 1:, :]
