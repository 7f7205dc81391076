"""The sentiment models: a BiLSTM, and one whose words see their heads in a latent tree."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pullback_study.tasks.text.bilstm import BiLSTM
from pullback_study.tasks.text.model import Encoded, TextModel, words_inside
from pullback_study.tasks.text.parser import ArcScorer

UNITS = 100


class Recurrent(TextModel):
    """What both models share: the words' vectors go through a BiLSTM of 100 units."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.lstm = BiLSTM(inputs, UNITS)

    def encode(self, vectors: Tensor, lengths: Tensor) -> Encoded:
        inside = words_inside(lengths, vectors.shape[1])
        vectors = vectors.masked_fill(~inside[..., None], 0.0)
        return Encoded(vectors, self.lstm(vectors, lengths), inside)


class Baseline(Recurrent):
    """The sum of the states over the words, and a two-layer ReLU network; no tree.

    Args:
        inputs: the size of a word's vector.
    """

    parser = None

    def __init__(self, inputs: int = 300) -> None:
        super().__init__(inputs)
        self.output = nn.Sequential(nn.Linear(UNITS, UNITS), nn.ReLU(), nn.Linear(UNITS, 2))

    def logits(self, encoded: Encoded, mu: Tensor | None) -> Tensor:
        return self.output(encoded.states.sum(1))


class LatentTree(Recurrent):
    """Each word's state beside its head's, an affine layer, ReLU, attention over the words, and a linear output.

        r_j = ReLU(A [h_j; head(j)] + a),    logits = O (sum over j of softmax_j(u . r_j) r_j) + o

    Args:
        inputs: the size of a word's vector.
    """

    parser: ArcScorer

    def __init__(self, inputs: int = 300) -> None:
        super().__init__(inputs)
        self.parser = ArcScorer(UNITS, UNITS)
        self.combine = nn.Linear(2 * UNITS, UNITS)
        self.attention = nn.Linear(UNITS, 1, bias=False)
        self.output = nn.Linear(UNITS, 2)

    def logits(self, encoded: Encoded, mu: Tensor | None) -> Tensor:
        assert mu is not None
        both = torch.cat([encoded.states, self.parser.heads(encoded.states, mu)], -1)
        words = torch.relu(self.combine(both))
        relevance = self.attention(words)[..., 0].masked_fill(~encoded.inside, torch.finfo(words.dtype).min)
        return self.output((relevance.softmax(-1)[:, None, :] @ words)[:, 0])
