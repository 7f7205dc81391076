"""A corpus ready for a model: word numbers in flat tensors, and a vector for each word."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

PADDING, UNKNOWN = 0, 1  # rows of the vectors; both are zero


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a corpus: N examples of one or two sentences each.

    Sentence k, side k % sides of example k // sides, is `words[offsets[k] : offsets[k + 1]]`.

    Args:
        words: rows of the corpus's vectors, all sentences one after the other, int32 `[total tokens]`.
        offsets: int64 `[N * sides + 1]`.
        labels: int64 `[N]`.
        sides: sentences per example: 1 for SST, 2 for SNLI (premise, hypothesis).
        dropped: how many examples of the file are left out, by rule.
        gold: the gold structure if the corpus has one, as one number per word, int32 `[total tokens]`: for a
            dependency tree the number of the word's head (0 is the root, 1 the first word), for a chain its tag.
    """

    words: Tensor
    offsets: Tensor
    labels: Tensor
    sides: int
    dropped: dict[str, int] = field(default_factory=dict)
    gold: Tensor | None = None

    def __len__(self) -> int:
        return self.labels.shape[0]

    @cached_property
    def lengths(self) -> Tensor:
        """The number of words of every sentence, int64 `[N, sides]`; always in the CPU's memory."""
        return self.offsets.cpu().diff().view(-1, self.sides)

    def to(self, device: torch.device | str) -> Split:
        """The same split in a device's memory, where `batches` then gathers."""
        return replace(
            self, words=self.words.to(device), offsets=self.offsets.to(device), labels=self.labels.to(device),
            gold=None if self.gold is None else self.gold.to(device),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Corpus:
    """Three splits and the vectors of the words that occur in them.

    Args:
        vectors: float32 `[rows, d]`. Row 0 is padding and row 1 the unknown word, both zero.
        vocabulary: the word of each row, as the vector file spells it.
        description: files and checksums, counts, vectors and coverage.
    """

    train: Split
    dev: Split
    test: Split
    vectors: Tensor
    vocabulary: list[str]
    description: dict[str, Any]

    @property
    def splits(self) -> dict[str, Split]:
        return {"train": self.train, "dev": self.dev, "test": self.test}
