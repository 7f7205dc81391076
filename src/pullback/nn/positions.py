"""Which positions of sentences count, and the way there and back: those that count stand first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pullback.inference.front.layout import check_tensor
from pullback.structures.readers import is_readable

if TYPE_CHECKING:
    from pullback.nn.crf import CRF

IGNORED = -100
"""The label that PyTorch's cross-entropy ignores."""


class Positions:
    """The positions of a batch that count.

    Attributes:
        emissions: `[B, n, C]`, as they were given.
        mask: which positions count, `[B, n]`, None for all.
        order: for each example, its positions that count, then the others, `[B, n]`; None where that is their order anyway.
        lengths: how many count, `[B]`.
        gathered_tags: the tags in this order, 0 where they do not count; empty without tags.
    """

    def __init__(self, emissions: Tensor, mask: Tensor | None, tags: Tensor | None, batch_first: bool) -> None:
        self.emissions = emissions
        self.mask = mask
        self.order: Tensor | None = None
        self._batch_first = batch_first
        self.count = emissions.shape[1]
        if mask is None:
            self.lengths = torch.full((emissions.shape[0],), self.count, device=emissions.device)
        else:
            self.lengths = mask.sum(1)
            if not is_readable(mask) or bool((mask[:, 1:] & ~mask[:, :-1]).any()):
                self.order = (~mask).long().argsort(dim=1, stable=True)
        self.gathered_tags = torch.empty(0)
        if tags is not None:
            ordered = tags if self.order is None else tags.gather(1, self.order)
            self.gathered_tags = torch.where(self.real, ordered, 0)

    @property
    def real(self) -> Tensor:
        """Which positions count, in the order, `[B, n]`."""
        return torch.arange(self.count, device=self.emissions.device) < self.lengths[:, None]

    def gathered(self, x: Tensor) -> Tensor:
        """From `[B, n, C]` to the order; what does not count is padding."""
        return x if self.order is None else x.gather(1, self.order[..., None].expand_as(x))

    def scattered(self, x: Tensor) -> Tensor:
        """From the order, zeros for padding, to the caller's positions and layout."""
        if self.order is not None:
            x = torch.zeros_like(x).scatter(1, self.order[..., None].expand_as(x), x)
        return x if self._batch_first else x.transpose(0, 1)

    def rows(self, which: list[int]) -> Positions:
        """Some of the examples, in this order and perhaps several times."""
        return Positions(self.emissions[which], None if self.mask is None else self.mask[which], None, self._batch_first)

    def places(self, example: int, start: int, end: int) -> list[int]:
        """Where the positions of a span that count stand in the order."""
        if not 0 <= start < end <= self.count:
            raise ValueError(f"the span from {start} to {end} of sentence {example} is none of {self.count} positions")
        counts = torch.ones(self.count) if self.mask is None else self.mask[example].cpu()
        places = (counts.cumsum(0) - 1)[start:end][counts[start:end] > 0].long().tolist()
        if not places:
            raise ValueError(f"no position from {start} to {end} of sentence {example} counts in the mask")
        return places


def positions_of(crf: CRF, emissions: Tensor, mask: Tensor | None, tags: Tensor | None = None) -> Positions:
    """The positions that count, after a look at the shapes; tags of -100 do not."""
    n = "B, n" if crf.batch_first else "n, B"
    for name, given in {"emissions": emissions, "tags": tags, "mask": mask}.items():
        if given is not None:
            check_tensor(given, "a CRF", name)
    if emissions.dim() != 3 or emissions.shape[-1] != crf.num_tags:
        raise ValueError(f"emissions has shape {list(emissions.shape)}; this CRF needs [{n}, {crf.num_tags}]")
    for name, x in {"tags": tags, "mask": mask}.items():
        if x is not None and x.shape != emissions.shape[:2]:
            raise ValueError(f"{name} has shape {list(x.shape)} and emissions {list(emissions.shape)}; {name} needs [{n}]")
    if not crf.batch_first:
        emissions = emissions.transpose(0, 1)
        tags, mask = (None if x is None else x.transpose(0, 1) for x in (tags, mask))
    mask = None if mask is None else mask.bool()
    if tags is not None:
        tags = _checked(tags, mask, crf)
        labelled = tags != IGNORED
        if not is_readable(tags) or not labelled.all():
            mask = labelled if mask is None else mask & labelled
    return Positions(emissions, mask, tags, crf.batch_first)


def _checked(tags: Tensor, mask: Tensor | None, crf: CRF) -> Tensor:
    if tags.dtype.is_floating_point or tags.dtype == torch.bool:
        raise TypeError(f"tags have dtype {tags.dtype}; they must be integers")
    tags = tags.long()
    if is_readable(tags):
        wrong = ((tags < 0) | (tags >= crf.num_tags)) & (tags != IGNORED)
        wrong = wrong if mask is None else wrong & mask
        if wrong.any():
            example, position = torch.nonzero(wrong)[0].tolist()
            place = (example, position) if crf.batch_first else (position, example)
            raise ValueError(
                f"tags{list(place)} is {int(tags[example, position])}; tags are from 0 to {crf.num_tags - 1}, or {IGNORED}"
            )
    return tags
