"""The models of ListOps, for many replicas at a time.

    encoder   two LSTMs over token embeddings give queries q and keys k;    score of the arc h -> m:  q_h . k_m
    decoder   state_h = e_h + sum over m of z[h, m] MLP([e_h; state_m]),  for so many rounds, from state = e
              logits from the state of token 0, the root, by a network with one hidden layer

e are the decoder's own embeddings of tokens. The root is token 0 and given: no other token may attach to it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pullback_study.tasks.listops.data import Split
from pullback_study.tasks.listops.expressions import TOKENS
from pullback_study.tasks.replicas import Parameters
from pullback_study.tasks.streams import key


class Encoded(NamedTuple):
    """What scores and decoder share, for R replicas of B expressions of n tokens.

    states: `[2 or 1, R, B, n, H]`, queries and keys, or the states of the model without trees; nothing with gold trees.
    embeddings: the decoder's, `[R, B, n, H]`.
    """

    states: Tensor | None
    embeddings: Tensor


class Model(Parameters):
    """Replicas of one architecture; `size` is H.

    There are 2 LSTMs with an encoder, 1 for the model without trees, 0 with gold trees. Dropout is of embeddings, in training;
    `scaled` divides scores by the root of H.
    """

    def __init__(self, *, size: int, lstms: int, rounds: int, dropout: float, scaled: bool = False) -> None:
        self.size, self.lstms, self.rounds, self.dropout, self.scaled = size, lstms, rounds, dropout, scaled
        n, h = len(TOKENS), size
        shapes = {
            "encoder.embedding": (n if lstms else 0, h),
            "encoder.input": (lstms, h, 4 * h),
            "encoder.bias": (lstms, 4 * h),
            "encoder.recurrent": (lstms, h, 4 * h),
            "decoder.embedding": (n if lstms != 1 else 0, h),
            "message.head": (h, h), "message.child": (h, h), "message.bias": (h,),
            "message.output": (h, h), "message.output_bias": (h,),
            "output.hidden": (h, h), "output.hidden_bias": (h,),
            "output.logits": (h, 10), "output.logits_bias": (10,),
        }  # fmt: skip
        super().__init__(shapes)

    def initial(self, seed: int) -> Tensor:
        """A replica's first parameters, `[P]`: PyTorch's defaults for `Embedding`, `LSTM` and `Linear`."""
        generator = torch.Generator().manual_seed(key("listops parameters", self.lstms, seed))
        parts = []
        for name, size in zip(self.shapes, self.sizes, strict=True):
            if name.endswith("embedding"):
                parts.append(torch.randn(size, generator=generator, dtype=torch.float64))
            else:
                bound = 1 / math.sqrt(2 * self.size if name in _OF_BOTH else self.size)
                parts.append((2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1) * bound)
        return torch.cat(parts)

    def encode(self, named: dict[str, Tensor], batch: Split, *, training: bool) -> Encoded:
        """Embeddings and LSTMs; dropout draws here alone, so that all calls of the decoder in a step see the same."""
        embeddings = self._dropped(_look_up(named["decoder.embedding"], batch.tokens), training) if self.lstms != 1 else None
        if self.lstms == 0:
            assert embeddings is not None
            return Encoded(None, embeddings)
        inputs = self._dropped(_look_up(named["encoder.embedding"], batch.tokens), training)
        replicas, count, n, size = inputs.shape
        flat = inputs.reshape(replicas, 1, count * n, size)
        gates = flat @ named["encoder.input"] + named["encoder.bias"][:, :, None]  # [R, lstms, B n, 4 H]
        gates = gates.view(replicas * self.lstms, count, n, 4 * size).permute(2, 0, 1, 3)
        states = lstm(gates, named["encoder.recurrent"].flatten(0, 1))
        states = states.view(n, replicas, self.lstms, count, size).permute(2, 1, 3, 0, 4)
        return Encoded(states, inputs if embeddings is None else embeddings)

    def scores(self, encoded: Encoded) -> Tensor:
        """`[R B, n, n]`, head x modifier; the root is on the diagonal, and only token 0 may attach to it."""
        assert encoded.states is not None
        queries, keys = encoded.states.flatten(1, 2)
        scores = queries @ keys.mT / (math.sqrt(self.size) if self.scaled else 1.0)
        place = torch.arange(scores.shape[-1], device=scores.device)
        return scores.masked_fill((place[:, None] == place) & (place > 0), -torch.inf)

    def logits(
        self, named: dict[str, Tensor], encoded: Encoded, z: Tensor, rounds: int | None = None, *, trees: bool = False
    ) -> Tensor:
        """The decoder on trees or averages of trees z, `[R B, n, n]`: `[R, B, 10]`.

        If all are `trees`, each token sends one message, and not n: the same numbers, without a gradient for z.
        """
        e = encoded.embeddings
        replicas, count, n, size = e.shape
        arcs = z * (1 - torch.eye(n, dtype=z.dtype, device=z.device))  # the root's arc carries no message
        children = arcs.sum(-1).view(replicas, count * n, 1)

        def linear(name: str, values: Tensor) -> Tensor:
            return values.reshape(replicas, count * n, size) @ named[name]

        received = _gathered if trees else _received
        own = (linear("message.head", e) + named["message.bias"][:, None]).view(-1, n, size)
        always = children * named["message.output_bias"][:, None]
        state = e
        for _ in range(rounds or self.rounds):
            summed = received(arcs, own, linear("message.child", state).view(-1, n, size))  # before the linear map
            state = e + (linear("message.output", summed) + always).view(e.shape)
        return self._classes(named, state[:, :, 0])

    def final(self, named: dict[str, Tensor], encoded: Encoded, batch: Split) -> Tensor:
        """The logits of the model without trees, `[R, B, 10]`: from the state of the last token."""
        assert encoded.states is not None
        states = encoded.states[0]
        last = (batch.lengths - 1)[..., None, None].expand(*states.shape[:2], 1, states.shape[-1])
        return self._classes(named, states.gather(2, last)[:, :, 0])

    def _classes(self, named: dict[str, Tensor], state: Tensor) -> Tensor:
        hidden = torch.relu(state @ named["output.hidden"] + named["output.hidden_bias"][:, None])
        return hidden @ named["output.logits"] + named["output.logits_bias"][:, None]

    def _dropped(self, values: Tensor, training: bool) -> Tensor:
        return torch.nn.functional.dropout(values, self.dropout, training=training) if self.dropout else values


_OF_BOTH = ("message.head", "message.child", "message.bias")


def _received(arcs: Tensor, own: Tensor, child: Tensor) -> Tensor:
    """Sums over m of arcs[h, m] relu(own[h] + child[m]), `[B, n, H]`: what the tokens h receive from their modifiers m."""
    batch, n, size = own.shape
    each = (own[:, :, None] + child[:, None]).relu_()
    return torch.bmm(arcs.reshape(batch * n, 1, n), each.view(batch * n, n, size)).view(batch, n, size)


def _gathered(trees: Tensor, own: Tensor, child: Tensor) -> Tensor:
    """The same for trees `[B, n, n]`, from the messages of the tokens to their heads alone."""
    heads = trees.argmax(-2)[..., None].expand_as(own)
    each = (own.gather(1, heads) + child).relu() * trees.sum(-2)[..., None]  # the root and padding have no head
    return torch.zeros_like(own).scatter_add(1, heads, each)


def _look_up(embedding: Tensor, tokens: Tensor) -> Tensor:
    """Rows of `[R, words, H]` for tokens `[R, B, n]`."""
    replicas, words, size = embedding.shape
    first = torch.arange(replicas, device=tokens.device)[:, None, None] * words
    return torch.nn.functional.embedding(tokens + first, embedding.reshape(-1, size))


def lstm(inputs: Tensor, recurrent: Tensor) -> Tensor:
    """The states of G LSTMs with weights of their own, from left to right: one batched product per token.

        i, f, g, o = inputs_t + h_{t-1} U,    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),    h_t = sigmoid(o) tanh(c_t)

    `[n, G, B, H]`, from the inputs' part of the gates with their biases, `[n, G, B, 4 H]`, and U, `[G, H, 4 H]`.
    """
    if inputs.is_cuda:
        return _Fused.apply(inputs, recurrent)
    _, groups, batch, _ = inputs.shape
    state = cell = inputs.new_zeros(groups, batch, recurrent.shape[1])
    states = []
    for gates in inputs.unbind(0):
        i, f, g, o = (gates + torch.bmm(state, recurrent)).chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        state = o.sigmoid() * cell.tanh()
        states.append(state)
    return torch.stack(states)


class _Fused(torch.autograd.Function):
    """The same with the cell in one kernel, as in `torch.nn.LSTMCell` on a GPU.

    The weights' gradient is one product over all tokens at the end, not a product and a sum for each.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, recurrent: Tensor) -> Tensor:
        n, groups, batch, width = inputs.shape
        flat = inputs.reshape(n, groups * batch, width)
        states = inputs.new_zeros(n + 1, groups, batch, width // 4)
        cells, kept = [states.new_zeros(groups * batch, width // 4)], []
        for t in range(n):
            state, cell, gates = _CELL(flat[t], torch.bmm(states[t], recurrent).flatten(0, 1), cells[-1])
            states[t + 1] = state.view(groups, batch, -1)
            cells.append(cell)
            kept.append(gates)
        ctx.save_for_backward(recurrent, states, *cells, *kept)
        return states[1:]

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        recurrent, states, *rest = ctx.saved_tensors
        n, groups, batch, size = gradient.shape
        cells, kept = rest[: n + 1], rest[n + 1 :]
        back = recurrent.mT.contiguous()
        to_inputs = gradient.new_empty(n, groups, batch, 4 * size)
        to_state, to_cell = gradient[n - 1], torch.zeros_like(cells[0])
        for t in reversed(range(n)):
            to_gates, to_cell, _ = _CELL_BACKWARD(
                to_state.reshape(-1, size), to_cell, cells[t], cells[t + 1], kept[t].view(groups * batch, 4 * size), False
            )
            to_inputs[t] = to_gates.view(groups, batch, 4 * size)
            if t:
                to_state = torch.baddbmm(gradient[t - 1], to_inputs[t], back)
        before, after = (x.transpose(0, 1).reshape(groups, n * batch, -1) for x in (states[:n], to_inputs))
        if n * batch % 10 == 0:  # a long sum in ten parts
            before, after = (x.reshape(groups, 10, n * batch // 10, -1) for x in (before, after))
            return to_inputs, (before.mT @ after).sum(1)
        return to_inputs, torch.bmm(before.mT, after)


_CELL = torch.ops.aten._thnn_fused_lstm_cell
_CELL_BACKWARD = torch.ops.aten._thnn_fused_lstm_cell_backward_impl
