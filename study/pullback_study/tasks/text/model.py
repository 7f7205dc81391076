"""The contract of a text model: an encoder, an arc scorer, and a decoder that reads the trees."""

from __future__ import annotations

import abc
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pullback_study.tasks.text.parser import ArcScorer


class Encoded(NamedTuple):
    """What the encoder makes of a batch.

    Attributes:
        vectors: the words' own vectors, `[B, ..., n, d]`, zero on padding.
        states: the encoder's, `[B, ..., n, h]`, zero on padding.
        inside: which words are real, `[B, ..., n]` of bool.
    """

    vectors: Tensor
    states: Tensor
    inside: Tensor


class TextModel(nn.Module, abc.ABC):
    """From word vectors to logits, through a tree for each sentence if there is an arc scorer.

    A model never knows which estimator trains it: it scores arcs, and reads whatever structure it is given.
    """

    parser: ArcScorer | None
    """None for a baseline, which has no trees."""

    @abc.abstractmethod
    def encode(self, vectors: Tensor, lengths: Tensor) -> Encoded:
        """Encode sentences.

        Args:
            vectors: `[B, ..., n, d]`; what padding holds does not matter.
            lengths: the number of words of each sentence, `[B, ...]`.
        """

    @abc.abstractmethod
    def logits(self, encoded: Encoded, mu: Tensor | None) -> Tensor:
        """`[B, classes]`.

        Args:
            encoded: the sentences.
            mu: trees, or averages of trees, `[B, ..., n, n]`, head x modifier with the root on the diagonal; None
                for a baseline.
        """

    def scores(self, encoded: Encoded) -> Tensor:
        """The scores of the arcs, `[B, ..., n, n]`, head x modifier, with the root on the diagonal."""
        assert self.parser is not None, "a baseline has no trees"
        return self.parser(encoded.states)


def words_inside(lengths: Tensor, n: int) -> Tensor:
    """Which of n words are real, `[..., n]` of bool, for sentences of the given lengths `[...]`."""
    return torch.arange(n, device=lengths.device) < lengths[..., None]
