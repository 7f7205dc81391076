"""Batches of sentences of similar length, in an order that depends on (seed, epoch) and on the split alone.

In every epoch the examples are shuffled and cut into pools; a pool is sorted by length and cut into batches, and all
batches are shuffled. Pools keep padding small, and batches different from one epoch to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pullback_study.corpora.corpus import PADDING, Split

POOL = 50  # batches


@dataclass(frozen=True, eq=False)
class Batch:
    """B examples, padded to n words per sentence; `[B, 2, n]` and `[B, 2]` for examples with two sides.

    Args:
        words: rows of the corpus's vectors, 0 on padding, int64 `[B, n]`.
        lengths: int64 `[B]`.
        labels: int64 `[B]`.
        indices: the numbers of these examples in the split, int64 `[B]`.
        gold: `Split.gold` of these words, -1 on padding, int64 `[B, n]`; None if the corpus has no gold structures.
    """

    words: Tensor
    lengths: Tensor
    labels: Tensor
    indices: Tensor
    gold: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        parts = (self.words, self.lengths, self.labels, self.indices, self.gold)
        return Batch(*(None if each is None else each.to(device, non_blocking=True) for each in parts))  # type: ignore[arg-type]


class Batches:
    """The batches of an epoch, made by `batches` and gathered on the split's device when they are indexed.

    Args:
        split: the examples.
        plan: the examples of each batch.
        device: where batches go.
        multiple: n is the longest sentence's length, rounded up to a multiple of this.
    """

    def __init__(self, split: Split, plan: list[Tensor], *, device: torch.device | str, multiple: int = 1) -> None:
        self.plan = plan
        self._split = split
        self._device = torch.device(device)
        longest = split.lengths.amax(1)
        self._widths = [-(-max(int(longest[each].max()), 1) // multiple) * multiple for each in plan]
        # one copy to the device for the whole epoch: gathering a batch then needs none
        self._indices = torch.cat(plan).to(split.words.device).split([len(each) for each in plan]) if plan else ()

    def __len__(self) -> int:
        return len(self.plan)

    def examples(self, number: int) -> tuple[Tensor, int]:
        """The arguments of `gather`: the examples of a batch, int64 `[B]` on the split's device, and n."""
        return self._indices[number], self._widths[number]

    def __getitem__(self, number: int) -> Batch:
        batch = gather(self._split, *self.examples(number))
        return batch if batch.words.device == self._device else batch.to(self._device)

    def __iter__(self) -> Iterator[Batch]:
        return (self[number] for number in range(len(self)))


def batches(
    split: Split,
    size: int,
    *,
    seed: int | None,
    epoch: int = 0,
    device: torch.device | str | None = None,
    multiple: int = 1,
) -> Batches:
    """The batches of an epoch: each example once; one batch may be smaller than the others.

    Args:
        split: the examples; `split.to("cuda")` first, and batches are gathered on the GPU.
        size: examples per batch.
        seed: None for evaluation: sorted by length, always the same.
        epoch: from 0; each epoch has its own order.
        device: where batches go; the split's device by default.
        multiple: pad sentences to a multiple of this many words, for few different shapes.

    >>> split = Split(torch.arange(2, 8), torch.tensor([0, 1, 4, 6]), torch.tensor([0, 1, 0]), sides=1)
    >>> batch, last = batches(split, 2, seed=None)
    >>> batch.words, batch.indices
    (tensor([[2, 0],
             [6, 7]]), tensor([0, 2]))
    """
    if size < 1 or multiple < 1:
        raise ValueError(f"batches of {size} examples, padded to a multiple of {multiple}: both must be at least 1")
    plan = _sorted(split, size) if seed is None else _bucketed(split, size, np.random.default_rng([seed, epoch]))
    return Batches(split, plan, device=device or split.words.device, multiple=multiple)


def gather(split: Split, indices: Tensor, width: int) -> Batch:
    """The batch of these examples, padded to `width` words; without a copy from or to the split's device."""
    sentences = indices[:, None] * split.sides + torch.arange(split.sides, device=indices.device)
    start = split.offsets[sentences]
    lengths = split.offsets[sentences + 1] - start
    position = torch.arange(width, device=indices.device)
    inside = position < lengths[..., None]
    at = torch.where(inside, start[..., None] + position, 0)
    words = split.words[at].long().masked_fill(~inside, PADDING)
    gold = None if split.gold is None else split.gold[at].long().masked_fill(~inside, -1)
    if split.sides == 1:
        words, lengths, gold = words[:, 0], lengths[:, 0], None if gold is None else gold[:, 0]
    return Batch(words, lengths, split.labels[indices], indices, gold)


def _sorted(split: Split, size: int) -> list[Tensor]:
    """By length; the file's order where lengths are equal."""
    return list(torch.from_numpy(np.argsort(_keys(split), kind="stable")).split(size)) if len(split) else []


def _bucketed(split: Split, size: int, generator: np.random.Generator) -> list[Tensor]:
    keys = _keys(split)
    order = generator.permutation(len(split))
    plan: list[Tensor] = []
    for pool in np.split(order, range(POOL * size, len(order), POOL * size)):
        by_length = pool[np.argsort(keys[pool], kind="stable")]
        plan += torch.from_numpy(by_length).split(size) if len(pool) else ()
    return [plan[number] for number in generator.permutation(len(plan))]


def _keys(split: Split) -> np.ndarray:
    """The sort key of batches: the longest side, to which all are padded, then the number of words."""
    lengths = split.lengths.numpy()
    return lengths.max(1) * (lengths.sum(1).max(initial=0) + 1) + lengths.sum(1)
