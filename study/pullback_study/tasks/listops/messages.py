"""The sum of messages that a token receives, on a GPU without an array of all pairs of tokens.

    received[h] = sum over m of arcs[h, m] relu(own[h] + child[m])

The pairs of one round take `[B, n, n, H]` numbers, which PyTorch writes and reads about ten times in a step. The kernels
here keep them in registers: one program has some heads (or modifiers) of one expression, and goes over the others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback_study.tasks.kernels import interpreting, jit, launch, tl

_ROWS = 8


def received(arcs: Tensor, own: Tensor, child: Tensor) -> Tensor:
    """`[B, n, H]` from arcs `[B, n, n]` (head x modifier), own and child `[B, n, H]`."""
    if arcs.is_cuda or interpreting():
        return _Received.apply(arcs.contiguous(), own.contiguous(), child.contiguous())
    batch, n, size = own.shape
    each = (own[:, :, None] + child[:, None]).relu_()
    return torch.bmm(arcs.reshape(batch * n, 1, n), each.view(batch * n, n, size)).view(batch, n, size)


def product(values: Tensor, weights: Tensor) -> Tensor:
    """`[..., K, O]` from values `[..., K, I]` and weights `[..., I, O]`; the gradient of weights, a long sum, in ten parts."""
    return _Product.apply(values, weights) if values.is_cuda and values.shape[-2] % 10 == 0 else values @ weights


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(values, weights)
        return values @ weights

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        values, weights = ctx.saved_tensors
        before, after = (x.reshape(*x.shape[:-2], 10, -1, x.shape[-1]) for x in (values, gradient))
        to_weights = (before.mT @ after).sum(-3)
        return (gradient @ weights.mT).sum_to_size(values.shape), to_weights.sum_to_size(weights.shape)


class _Received(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, arcs: Tensor, own: Tensor, child: Tensor) -> Tensor:
        ctx.save_for_backward(arcs, own, child)
        out = torch.empty_like(own)
        _launch(_sum, arcs, own, child, out)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        arcs, own, child = ctx.saved_tensors
        found = torch.empty_like(arcs), torch.empty_like(own), torch.empty_like(child)
        gradient = gradient.contiguous()
        _launch(_of_heads, arcs, own, child, gradient, found[0], found[1])
        _launch(_of_modifiers, arcs, own, child, gradient, found[2])
        return found


def _launch(kernel: Any, arcs: Tensor, own: Tensor, *others: Tensor) -> None:
    batch, n, size = own.shape
    blocks = -(-n // _ROWS)
    padded = 1 << (size - 1).bit_length()
    launch(kernel, batch * blocks, own.device, arcs, own, *others, n, size, blocks, rows=_ROWS, padded=padded, num_warps=4)


@jit(do_not_specialize=["n", "size", "blocks"])
def _sum(arcs, own, child, out, n, size, blocks, rows: tl.constexpr, padded: tl.constexpr):  # type: ignore[no-untyped-def]
    expression, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * rows
    h, k = first + tl.arange(0, rows), tl.arange(0, padded)
    tile = expression * n * size + h[:, None] * size + k
    inside = (h < n)[:, None] & (k < size)
    mine = tl.load(own + tile, mask=inside, other=0.0)
    total = tl.zeros_like(mine)
    for m in range(n):
        weight = tl.load(arcs + expression * n * n + h * n + m, mask=h < n, other=0.0)
        other = tl.load(child + expression * n * size + m * size + k, mask=k < size, other=0.0)
        total += weight[:, None] * tl.maximum(mine + other, 0.0)
    tl.store(out + tile, total, mask=inside)


@jit(do_not_specialize=["n", "size", "blocks"])
def _of_heads(  # type: ignore[no-untyped-def]
    arcs, own, child, gradient, to_arcs, to_own, n, size, blocks, rows: tl.constexpr, padded: tl.constexpr
):
    expression, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * rows
    h, k = first + tl.arange(0, rows), tl.arange(0, padded)
    tile = expression * n * size + h[:, None] * size + k
    inside = (h < n)[:, None] & (k < size)
    mine, given = tl.load(own + tile, mask=inside, other=0.0), tl.load(gradient + tile, mask=inside, other=0.0)
    passed = tl.zeros_like(mine)
    for m in range(n):
        place = expression * n * n + h * n + m
        weight = tl.load(arcs + place, mask=h < n, other=0.0)
        message = mine + tl.load(child + expression * n * size + m * size + k, mask=k < size, other=0.0)
        passed += tl.where(message > 0, weight[:, None], 0.0)
        tl.store(to_arcs + place, tl.sum(given * tl.maximum(message, 0.0), 1), mask=h < n)
    tl.store(to_own + tile, given * passed, mask=inside)


@jit(do_not_specialize=["n", "size", "blocks"])
def _of_modifiers(  # type: ignore[no-untyped-def]
    arcs, own, child, gradient, to_child, n, size, blocks, rows: tl.constexpr, padded: tl.constexpr
):
    expression, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * rows
    m, k = first + tl.arange(0, rows), tl.arange(0, padded)
    tile = expression * n * size + m[:, None] * size + k
    inside = (m < n)[:, None] & (k < size)
    mine = tl.load(child + tile, mask=inside, other=0.0)
    total = tl.zeros_like(mine)
    for h in range(n):
        weight = tl.load(arcs + expression * n * n + h * n + m, mask=m < n, other=0.0)
        row = expression * n * size + h * size + k
        head = tl.load(own + row, mask=k < size, other=0.0)
        given = tl.load(gradient + row, mask=k < size, other=0.0)
        total += tl.where(mine + head > 0, weight[:, None] * given, 0.0)
    tl.store(to_child + tile, total, mask=inside)
