"""A corpus ready for a model: word numbers in flat tensors, a vector for each word, and batches of sentences.

Batches hold sentences of similar length, in an order that depends on (seed, epoch) and on the split alone. In every epoch
the examples are shuffled and cut into pools; a pool is sorted by length and cut into batches, and all batches are shuffled.
Pools keep padding small, and batches different from one epoch to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

PADDING, UNKNOWN = 0, 1  # rows of the vectors; both are zero
POOL = 50  # batches


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a corpus: N examples of one or two sentences each.

    Sentence k, side k % sides of example k // sides, is `words[offsets[k] : offsets[k + 1]]`.
    """

    words: Tensor  # rows of the corpus's vectors, all sentences one after the other, int32 [total tokens]
    offsets: Tensor  # int64 [N * sides + 1]
    labels: Tensor  # int64 [N]
    sides: int  # sentences per example: 1 for SST, 2 for SNLI (premise, hypothesis)
    dropped: dict[str, int] = field(default_factory=dict)  # how many examples of the file are left out, by rule

    def __len__(self) -> int:
        return self.labels.shape[0]

    @cached_property
    def lengths(self) -> Tensor:
        """The number of words of every sentence, int64 `[N, sides]`; always in the CPU's memory."""
        return self.offsets.cpu().diff().view(-1, self.sides)

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Split:
        """The same split in a device's memory, where `batches` then gathers; it has no numbers of a floating-point type."""
        return replace(self, **{name: getattr(self, name).to(device) for name in ("words", "offsets", "labels")})

    def first(self, examples: int) -> Split:
        """The first examples."""
        offsets = self.offsets[: min(examples, len(self)) * self.sides + 1]
        return replace(self, words=self.words[: int(offsets[-1])], offsets=offsets, labels=self.labels[:examples])


@dataclass(frozen=True, eq=False)
class Corpus:
    """Three splits and the vectors of the words that occur in them."""

    train: Split
    dev: Split
    test: Split
    vectors: Tensor  # float32 [rows, d]; row 0 is padding and row 1 the unknown word, both zero
    vocabulary: list[str]  # the word of each row, as the vector file spells it
    description: dict[str, Any]  # files and checksums, counts, vectors and coverage


@dataclass(frozen=True, eq=False)
class Batch:
    """B examples, padded to n words per sentence, int64; `[B, 2, n]` and `[B, 2]` for examples with two sides."""

    words: Tensor  # rows of the corpus's vectors, 0 on padding, [B, n]
    lengths: Tensor  # [B]
    labels: Tensor  # [B]


def batches(split: Split, size: int, *, seed: int | None, epoch: int = 0, multiple: int = 1) -> list[tuple[Tensor, int]]:
    """The batches of an epoch, for `gather`: examples, int64 `[B]` on the split's device, and the number n of words.

    Each example comes once; one batch may have fewer than `size` examples. Without a seed, for evaluation: sorted by length,
    always the same. Sentences are padded to a multiple of `multiple` words, for few different shapes. After
    `split.to("cuda")`, batches are gathered on the GPU.
    """
    if size < 1 or multiple < 1:
        raise ValueError(f"batches of {size} examples, padded to a multiple of {multiple}: both must be at least 1")
    lengths = split.lengths.numpy()
    keys = lengths.max(1) * (lengths.sum(1).max(initial=0) + 1) + lengths.sum(1)  # the longest side, then all words
    if seed is None:
        plan = list(torch.from_numpy(np.argsort(keys, kind="stable")).split(size)) if len(split) else []
    else:
        plan = _bucketed(keys, size, np.random.default_rng([seed, epoch]))
    if not plan:
        return []
    longest = split.lengths.amax(1)
    widths = [-(-max(int(longest[each].max()), 1) // multiple) * multiple for each in plan]
    # one copy to the device for the whole epoch: gathering a batch then needs none
    examples = torch.cat(plan).to(split.words.device).split([len(each) for each in plan])
    return list(zip(examples, widths, strict=True))


def gather(split: Split, indices: Tensor, width: int) -> Batch:
    """The batch of these examples, padded to `width` words; without a copy from or to the split's device."""
    sentences = indices[:, None] * split.sides + torch.arange(split.sides, device=indices.device)
    start = split.offsets[sentences]
    lengths = split.offsets[sentences + 1] - start
    position = torch.arange(width, device=indices.device)
    inside = position < lengths[..., None]
    at = torch.where(inside, start[..., None] + position, 0)
    words = split.words[at].long().masked_fill(~inside, PADDING)
    if split.sides == 1:
        words, lengths = words[:, 0], lengths[:, 0]
    return Batch(words, lengths, split.labels[indices])


def _bucketed(keys: np.ndarray, size: int, generator: np.random.Generator) -> list[Tensor]:
    order = generator.permutation(len(keys))
    plan: list[Tensor] = []
    for pool in np.split(order, range(POOL * size, len(order), POOL * size)):
        plan += torch.from_numpy(pool[np.argsort(keys[pool], kind="stable")]).split(size) if len(pool) else ()
    return [plan[number] for number in generator.permutation(len(plan))]
