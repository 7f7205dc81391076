"""LSTMs with weights of their own for each replica, as one batched product per token."""

from __future__ import annotations

import torch
from torch import Tensor


def lstm(inputs: Tensor, recurrent: Tensor) -> Tensor:
    """The states of G LSTMs, from left to right.

        i, f, g, o = inputs_t + h_{t-1} U,    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),    h_t = sigmoid(o) tanh(c_t)

    Args:
        inputs: `[n, G, B, 4 H]`, the inputs' part of the gates with their biases.
        recurrent: U, `[G, H, 4 H]`.

    Returns:
        `[n, G, B, H]`.
    """
    _, groups, batch, _ = inputs.shape
    size = recurrent.shape[1]
    state = cell = inputs.new_zeros(groups, batch, size)
    states = []
    for gates in inputs.unbind(0):
        state, cell = _cell(gates, torch.bmm(state, recurrent), cell)
        states.append(state)
    return torch.stack(states)


def _cell(inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    if inputs.is_cuda and _FUSED is not None:  # one kernel, and one for its gradient
        shape = cell.shape
        state, cell, _ = _FUSED(inputs.flatten(0, 1), hidden.flatten(0, 1), cell.flatten(0, 1))
        return state.view(shape), cell.view(shape)
    i, f, g, o = (inputs + hidden).chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


_FUSED = getattr(torch.ops.aten, "_thnn_fused_lstm_cell", None)
"""PyTorch's fused cell, which `torch.nn.LSTMCell` runs on a GPU; the formula above where it is not there."""
