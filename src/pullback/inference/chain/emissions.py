"""Emissions joined to transitions: the scores of a chain, and the sums that are the derivative.

PyTorch's loops are as short as a row of tags, and its memory for large results is new each time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference._numba.compile import kernel
from pullback.inference._numba.lanes import aligned, lanes_in, load, splat, store
from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.rows import load_first, store_first
from pullback.inference._numba.threads import spread
from pullback.inference._torch import derivatives


def join(transitions: Tensor, emissions: Tensor) -> Tensor:
    """`[..., n, C, C]`, differentiable: `transitions[..., i, a, b] + emissions[..., i, b]`."""
    alike = transitions.dim() == 3 and transitions.dtype == emissions.dtype in (torch.float32, torch.float64)
    if alike and derivatives.DISPATCHED not in map(derivatives.route, (transitions, emissions)):
        return derivatives.apply(_Join, transitions, emissions)
    return transitions + emissions[..., None, :]


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(transitions: Tensor, emissions: Tensor) -> Tensor:
        out = empty_like(emissions[..., None, :].expand(*emissions.shape, emissions.shape[-1]))
        _spread(_add, transitions, emissions, out)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[override]
        first, second = ctx.needs_input_grad
        if torch.is_grad_enabled() or derivatives.is_batched(grad):
            return grad.sum_to_size(ctx.shape) if first else None, grad.sum(-2) if second else None
        sums = torch.empty(grad.shape[:-1], dtype=grad.dtype) if second else None
        if sums is not None:
            _spread(_sum, grad, sums)
        return grad.sum_to_size(ctx.shape) if first else None, sums


def _spread(function: Any, *tensors: Tensor) -> None:
    tags = tensors[0].shape[-1]
    rows = tensors[1].numel() // tags  # of emissions, or of their gradient
    spread(function, rows, 0.5 * rows * tags**2, rows, tags, *[x.detach().contiguous().numpy().reshape(-1) for x in tensors])


@kernel
def _add(worker, workers, rows, tags, transitions, emissions, out):
    cells, lanes = tags * tags, lanes_in(out)
    tiled = aligned(tags + lanes, out)
    for r in range(worker, rows, workers):
        base, at, place = r * cells, r * cells % len(transitions), 0
        for p in range(len(tiled)):
            tiled[p] = emissions[r * tags + place]
            place = place + 1 if place + 1 < tags else 0
        place = 0
        for p in range(0, cells, lanes):
            if p + lanes <= cells:
                store(out, base + p, load(transitions, at + p) + load(tiled, place))
            else:
                x = load_first(transitions, at + p, cells - p, splat(out, 0.0))
                store_first(out, base + p, cells - p, x + load(tiled, place))
            place = (place + lanes) % tags if lanes > tags else place + lanes - (tags if place + lanes >= tags else 0)


@kernel
def _sum(worker, workers, rows, tags, grad, out):
    cells, lanes = tags * tags, lanes_in(out)
    for r in range(worker, rows, workers):
        for k in range(0, tags, lanes):
            total, width = splat(out, 0.0), min(lanes, tags - k)
            for at in range(r * cells + k, (r + 1) * cells, tags):
                full = at + lanes <= len(grad)
                total = total + (load(grad, at) if full else load_first(grad, at, width, splat(out, 0.0)))
            store_first(out, r * tags + k, width, total)
