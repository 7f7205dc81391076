"""Automatic differentiation inside an operator, for the reference implementations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def gradient(value: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The gradient at x of the sum of `value(x)`."""
    return _with_autograd(lambda leaf: _gradient(value(leaf).sum(), leaf), x)


def hessian_product(value: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> Tensor:
    """The Hessian at x of the sum of `value(x)`, times v."""

    def product(leaf: Tensor) -> Tensor:
        return _gradient((_gradient(value(leaf).sum(), leaf, create_graph=True) * v).sum(), leaf)

    return _with_autograd(product, x)


def _with_autograd(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Call it in a thread of its own: inside an operator autograd is off for the whole thread."""
    result: list[Any] = []

    def run() -> None:
        result.append(function(x.detach().clone().requires_grad_()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0].detach()


def _gradient(value: Tensor, of: Tensor, create_graph: bool = False) -> Tensor:
    if not value.requires_grad:
        return torch.zeros_like(of)
    (found,) = torch.autograd.grad(value, of, create_graph=create_graph, materialize_grads=True)
    return found
