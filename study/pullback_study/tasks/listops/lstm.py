"""LSTMs with weights of their own for each replica, as one batched product per token."""

from __future__ import annotations

from typing import Any

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
