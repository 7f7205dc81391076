"""The models of SST and SNLI: an encoder, an arc scorer, and a decoder that reads the trees.

A model never knows which estimator trains it. It encodes sentences, from vectors `[B, ..., n, d]`, with anything on padding,
and lengths `[B, ...]`; its `parser`, None for a baseline, scores arcs from their states; and its decoder has logits
`[B, classes]` from trees or averages of trees, `[B, ..., n, n]`, or from None.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

SLICE = 2**23
"""On a GPU, the hidden layer of an arc scorer is computed for whole sentences of at most this many numbers together."""


class Encoded(NamedTuple):
    """What the encoder makes of a batch."""

    vectors: Tensor  # the words' own, [B, ..., n, d], zero on padding
    states: Tensor  # the encoder's, [B, ..., n, h], zero on padding
    inside: Tensor  # which words are real, [B, ..., n] of bool


class BiLSTM(nn.Module):
    """Two LSTMs over sentences padded on the right, one from the left and one from each sentence's own last word.

    An LSTM's state depends on what came before it alone, so padding on the right changes nothing; the second one
    reads each sentence reversed in place. Packed sequences give the same, more slowly on a CPU, and they need the lengths
    on the host. Both directions together have `units`, an even number.
    """

    def __init__(self, inputs: int, units: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(inputs, units // 2, batch_first=True)
        self.backwards = nn.LSTM(inputs, units // 2, batch_first=True)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """States `[B, n, units]`, zero on padding, from vectors `[B, n, d]` and lengths `[B]`."""
        position, inside = torch.arange(vectors.shape[1], device=vectors.device), _inside(lengths, vectors.shape[1])
        mirrored = torch.where(inside, lengths[:, None] - 1 - position, position)
        left = self.forwards(vectors)[0]
        right = _take(self.backwards(_take(vectors, mirrored))[0], mirrored)
        return torch.cat([left, right], -1).masked_fill(~inside[..., None], 0.0)


class ArcScorer(nn.Module):
    """The score of each arc from the states of its two words.

        s(i -> j) = v . tanh(W [h_i; h_j] + b)

    A learned root vector stands in the place of h_i for the attachment of word j to the root. W [h_i; h_j] is computed
    as W_1 h_i + W_2 h_j, so that no `[n, n, 2h]` tensor is formed.
    """

    def __init__(self, states: int, hidden: int) -> None:
        super().__init__()
        self.head = nn.Linear(states, hidden)
        self.modifier = nn.Linear(states, hidden, bias=False)
        self.output = nn.Linear(hidden, 1, bias=False)
        self.root = nn.Parameter(torch.empty(states).uniform_(-1, 1) / states**0.5)
        for part in (self.head.weight, self.modifier.weight, self.head.bias):  # as in the one layer of 2h inputs they are
            nn.init.uniform_(part, -((2 * states) ** -0.5), (2 * states) ** -0.5)

    def forward(self, states: Tensor) -> Tensor:
        """Scores `[..., n, n]`, head x modifier, with the root on the diagonal, from states `[..., n, h]`."""
        head, modifier, v = self.head(states), self.modifier(states), self.output.weight[0]
        arcs = sliced_arcs(head, modifier, v) if states.is_cuda else _hidden(head, modifier) @ v
        root = torch.tanh(self.head(self.root) + modifier) @ v
        return torch.where(_diagonal(arcs), root[..., None, :], arcs)

    def heads(self, states: Tensor, mu: Tensor) -> Tensor:
        """The mean of each word's heads, `[..., n, h]`: one head for a tree.

        head(j) = sum over i of mu(i -> j) h_i + mu(root -> j) root
        """
        from_words = mu.masked_fill(_diagonal(mu), 0.0).mT @ states
        return from_words + mu.diagonal(dim1=-2, dim2=-1)[..., None] * self.root


class _SlicedArcs(torch.autograd.Function):
    """tanh(head_i + modifier_j) . v for sentences `[R, n, h]`, some of them at a time; the backward pass computes the
    hidden layer, `[R, n, n, h]`, again. It would be 700 MB for 64 pairs of 84 words, several times in a step, and CUDA
    graphs of batches of many widths could not share it.
    """

    @staticmethod
    def forward(ctx: Any, head: Tensor, modifier: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(head, modifier, v)
        parts = zip(*(each.split(_rows(head)) for each in (head, modifier)), strict=True)
        return torch.cat([_hidden(some, others) @ v for some, others in parts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        head, modifier, v = ctx.saved_tensors
        parts = zip(*(each.split(_rows(head)) for each in (head, modifier, gradient)), strict=True)
        of_head, of_modifier, of_v = zip(*(_arc_gradients(*part, v=v) for part in parts), strict=True)
        return torch.cat(of_head), torch.cat(of_modifier), torch.stack(of_v).sum(0)


def sliced_arcs(head: Tensor, modifier: Tensor, v: Tensor) -> Tensor:
    """tanh(head_i + modifier_j) . v, `[..., n, n]`, from `[..., n, h]` and `[h]`, in the memory of a `SLICE`."""
    sentences = head.shape[-2:]
    arcs = _SlicedArcs.apply(head.reshape(-1, *sentences), modifier.reshape(-1, *sentences), v)
    return arcs.reshape(*head.shape[:-1], head.shape[-2])


def _rows(head: Tensor) -> int:
    """How many sentences are a slice."""
    _, n, hidden = head.shape
    return max(1, SLICE // max(1, n * n * hidden))


def _hidden(head: Tensor, modifier: Tensor) -> Tensor:
    return torch.tanh(head[..., :, None, :] + modifier[..., None, :, :])


def _arc_gradients(head: Tensor, modifier: Tensor, gradient: Tensor, *, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    hidden = _hidden(head, modifier)
    of_v = gradient.flatten() @ hidden.flatten(0, -2)
    inside = torch.ops.aten.tanh_backward(gradient[..., None] * v, hidden)
    return inside.sum(-2), inside.sum(-3), of_v


class BatchDropout(nn.Module):
    """Dropout whose mask is drawn once per batch, by `draw`: a decoder that is called at several points sees one mask.

    mask x / (1 - p) in training, x otherwise; an entry of the mask is 0 with probability p, else 1.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p, self._scale = p, torch.ones(())

    def draw(self, like: Tensor, *shape: int) -> None:
        """A new mask for inputs of a shape, in the type and on the device of a tensor."""
        if self.training:
            self._scale = (torch.rand(shape, device=like.device) >= self.p).to(like.dtype) / (1 - self.p)

    def forward(self, x: Tensor) -> Tensor:
        return x * self._scale if self.training else x


class Sentiment(nn.Module):
    """SST: a BiLSTM over the words; each word's state beside its head's, ReLU, attention over the words, a linear output.

        r_j = ReLU(A [h_j; head(j)] + a),    logits = O (sum over j of softmax_j(u . r_j) r_j) + o

    Without trees the sum of the states over the words goes through a two-layer ReLU network.
    """

    units = 100

    def __init__(self, inputs: int = 300, trees: bool = True) -> None:
        super().__init__()
        self.lstm, units = BiLSTM(inputs, self.units), self.units
        self.parser = ArcScorer(units, units) if trees else None
        if trees:
            self.combine = nn.Linear(2 * units, units)
            self.attention = nn.Linear(units, 1, bias=False)
        self.output = nn.Linear(units, 2) if trees else nn.Sequential(nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 2))

    def encode(self, vectors: Tensor, lengths: Tensor) -> Encoded:
        inside = _inside(lengths, vectors.shape[1])
        vectors = vectors.masked_fill(~inside[..., None], 0.0)
        return Encoded(vectors, self.lstm(vectors, lengths), inside)

    def logits(self, encoded: Encoded, mu: Tensor | None) -> Tensor:
        if self.parser is None or mu is None:
            return self.output(encoded.states.sum(1))
        both = torch.cat([encoded.states, self.parser.heads(encoded.states, mu)], -1)
        words = torch.relu(self.combine(both))
        relevance = self.attention(words)[..., 0].masked_fill(~encoded.inside, torch.finfo(words.dtype).min)
        return self.output((relevance.softmax(-1)[:, None, :] @ words)[:, 0])


class DecomposableAttention(nn.Module):
    """SNLI: align the words of premise and hypothesis, compare each with its counterpart, and add up.

        e_ij = <x_i, y_j>,    x_i = [f(a_i); head(i)],    y_j the same for the hypothesis; without trees, x_i = f(a_i)
        beta_i = sum over j of softmax_j(e_ij) b_j,    alpha_j = sum over i of softmax_i(e_ij) a_i
        logits = aggregate([sum_i compare([a_i; beta_i]); sum_j compare([b_j; alpha_j])])

    with a_i and b_j the words' own vectors, f two ReLU layers, and head(i) the mean of the encodings of word i's heads.
    All dropout masks are drawn by `encode`.
    Vectors are `[B, 2, n, d]` and lengths `[B, 2]`: premise, then hypothesis.
    """

    units, dropout = 200, 0.2

    def __init__(self, inputs: int = 300, trees: bool = True) -> None:
        super().__init__()
        self.encoder = nn.Sequential(*self._layer(inputs), *self._layer(self.units))
        self.compare = nn.Sequential(*self._layer(2 * inputs), *self._layer(self.units))
        self.aggregate = nn.Sequential(*self._layer(2 * self.units), nn.Linear(self.units, 3))
        self.parser = ArcScorer(self.units, self.units) if trees else None

    def _layer(self, inputs: int) -> list[nn.Module]:
        return [nn.Linear(inputs, self.units), nn.ReLU(), BatchDropout(self.dropout)]

    def encode(self, vectors: Tensor, lengths: Tensor) -> Encoded:
        inside = _inside(lengths, vectors.shape[2])
        for part, of in ((self.encoder, inside), (self.compare, inside), (self.aggregate, inside[:, 0, 0])):
            for each in part:
                if isinstance(each, BatchDropout):
                    each.draw(vectors, *of.shape, self.units)
        vectors = vectors.masked_fill(~inside[..., None], 0.0)
        return Encoded(vectors, self.encoder(vectors).masked_fill(~inside[..., None], 0.0), inside)

    def logits(self, encoded: Encoded, mu: Tensor | None) -> Tensor:
        vectors, states, inside = encoded
        if self.parser is not None and mu is not None:
            states = torch.cat([states, self.parser.heads(states, mu)], -1)
        agreement = states[:, 0] @ states[:, 1].mT
        towards = torch.stack([agreement, agreement.mT], 1).masked_fill(
            ~inside.flip(1)[:, :, None, :], torch.finfo(states.dtype).min
        )
        aligned = towards.softmax(-1) @ vectors.flip(1)
        compared = self.compare(torch.cat([vectors, aligned], -1))
        return self.aggregate(compared.masked_fill(~inside[..., None], 0.0).sum(2).flatten(1))


def depths(heads: Tensor) -> Tensor:
    """The arcs on the longest path from the artificial root, for each tree, `[...]`: 2 for a flat tree with one root.

    The heads of the words, `[..., n]`, are those of `DependencyTree.heads`: 0 is the root, 1 the first word, -1 padding.

    >>> depths(torch.tensor([[0, 1, 1], [0, 1, 2], [0, -1, -1]]))
    tensor([2, 3, 1])
    """
    inside = heads >= 0
    ancestor = nn.functional.pad(heads.clamp_min(0), (1, 0))  # node 0 is the root, its own ancestor
    depth = nn.functional.pad(inside.long(), (1, 0))
    covered = 1
    while covered < heads.shape[-1]:  # pointer jumping: each round doubles the arcs that are counted
        depth = depth + depth.gather(-1, ancestor)
        ancestor = ancestor.gather(-1, ancestor)
        covered *= 2
    return depth.amax(-1)


def _inside(lengths: Tensor, n: int) -> Tensor:
    """Which of n words are real, `[..., n]` of bool, for sentences of the given lengths `[...]`."""
    return torch.arange(n, device=lengths.device) < lengths[..., None]


def _take(sequences: Tensor, positions: Tensor) -> Tensor:
    return sequences.gather(1, positions[..., None].expand(-1, -1, sequences.shape[-1]))


def _diagonal(matrices: Tensor) -> Tensor:
    return torch.eye(matrices.shape[-1], dtype=torch.bool, device=matrices.device)
