"""Calls that more than one benchmark times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.inputs import Case


def with_backward(operation: Callable[[Tensor], Tensor], case: Case) -> Callable[[], tuple[Tensor, Tensor]]:
    """A call of the operation and of its backward pass at the case's direction."""
    scores = case.scores.clone().requires_grad_()

    def call() -> tuple[Tensor, Tensor]:
        mu = operation(scores)
        return mu.detach(), torch.autograd.grad(mu, scores, case.direction)[0]

    return call


class Nothing(torch.autograd.Function):
    """A function without work: what PyTorch needs for a forward and a backward pass."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        return x.detach()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:  # type: ignore[override]
        return grad


def captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call as a CUDA graph to replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()  # compiles
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay
