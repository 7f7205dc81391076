"""The inference model: decomposable attention, with or without the words' heads in latent trees."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pullback_study.tasks.text.model import Encoded, TextModel, words_inside
from pullback_study.tasks.text.parser import ArcScorer

UNITS = 200
DROPOUT = 0.2


class DecomposableAttention(TextModel):
    """Align the words of premise and hypothesis, compare each with its counterpart, and add up.

        e_ij = <x_i, y_j>,    x_i = [f(a_i); head(i)],    y_j the same for the hypothesis; without trees, x_i = f(a_i)
        beta_i = sum over j of softmax_j(e_ij) b_j,    alpha_j = sum over i of softmax_i(e_ij) a_i
        logits = aggregate([sum_i compare([a_i; beta_i]); sum_j compare([b_j; alpha_j])])

    with a_i and b_j the words' own vectors, f two ReLU layers, and head(i) the mean of the encodings of word i's heads.

    Args:
        inputs: the size of a word's vector.
        trees: whether words see their heads; without, there is no parser.
    """

    def __init__(self, inputs: int = 300, *, trees: bool) -> None:
        super().__init__()
        self.encoder = _two_layers(inputs)
        self.compare = _two_layers(2 * inputs)
        self.aggregate = nn.Sequential(nn.Linear(2 * UNITS, UNITS), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(UNITS, 3))
        self.parser = ArcScorer(UNITS, UNITS) if trees else None

    def encode(self, vectors: Tensor, lengths: Tensor) -> Encoded:
        """Vectors `[B, 2, n, d]` and lengths `[B, 2]`: premise, then hypothesis."""
        inside = words_inside(lengths, vectors.shape[2])
        vectors = vectors.masked_fill(~inside[..., None], 0.0)
        return Encoded(vectors, self.encoder(vectors).masked_fill(~inside[..., None], 0.0), inside)

    def logits(self, encoded: Encoded, mu: Tensor | None) -> Tensor:
        states, inside = encoded.states, encoded.inside
        if self.parser is not None:
            assert mu is not None
            states = torch.cat([states, self.parser.heads(states, mu)], -1)
        agreement = states[:, 0] @ states[:, 1].mT
        towards = torch.stack([agreement, agreement.mT], 1).masked_fill(
            ~inside.flip(1)[:, :, None, :], torch.finfo(states.dtype).min
        )
        aligned = towards.softmax(-1) @ encoded.vectors.flip(1)
        compared = self.compare(torch.cat([encoded.vectors, aligned], -1))
        return self.aggregate(compared.masked_fill(~inside[..., None], 0.0).sum(2).flatten(1))


def _two_layers(inputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, UNITS), nn.ReLU(), nn.Dropout(DROPOUT),
        nn.Linear(UNITS, UNITS), nn.ReLU(), nn.Dropout(DROPOUT),
    )  # fmt: skip
