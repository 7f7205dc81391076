"""Emissions, start, end and transitions as the one tensor that operators take: few entries in the graph of a backward pass."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from pullback.inference._torch import derivatives


def join(emissions: Tensor, start: Tensor, end: Tensor, transitions: Tensor) -> Tensor:
    """`[B, n + 2 + C, C]`, differentiable, from `[B, n, C]`, `[C]` or `[B, C]`, and `[C, C]` or `[B, C, C]`."""
    shared = start.dim() == end.dim() == 1 and transitions.dim() == 2
    given = emissions, start, end, transitions
    if shared and emissions.dtype == start.dtype == end.dtype == transitions.dtype:
        routes = [derivatives.route(x) for x in given]
        if derivatives.DISPATCHED not in routes:
            return derivatives.apply(_Join, *given) if derivatives.RECORDED in routes else _Join.forward(*given)
    batch, tags = len(emissions), emissions.shape[2]
    dtype = functools.reduce(torch.promote_types, [x.dtype for x in given])
    ends = [x.expand(batch, tags)[:, None] for x in (start, end)]
    return torch.cat([x.to(dtype) for x in (emissions, *ends, transitions.expand(batch, tags, tags))], 1)


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(emissions: Tensor, start: Tensor, end: Tensor, transitions: Tensor) -> Tensor:
        rest = torch.cat([start[None], end[None], transitions])
        return torch.cat([emissions, rest.expand(len(emissions), *rest.shape)], 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.n = inputs[0].shape[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        rest = grad[:, ctx.n :].sum(0)
        return grad[:, : ctx.n], rest[0], rest[1], rest[2:]
