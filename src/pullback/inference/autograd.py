"""Derivatives of operators of `torch.library`: `register_autograd`, with less between a call and its kernel.

On a GPU the time of a small call is that of the Python around it, and PyTorch's own registration reads an operator's
schema in every call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_below = torch._C._AutoDispatchBelowAutograd


def register(
    library: torch.library.Library, name: str, backward: Callable[..., tuple[Any, ...]], setup: Callable[..., None]
) -> None:
    """Register the derivative of an operator without defaults and keyword-only arguments.

    Args:
        library: where the operator is defined.
        name: the operator's name in it.
        backward: from the context and the gradients of the outputs to those of all arguments.
        setup: keeps in the context what `backward` needs, from the arguments and the output.
    """
    operator = getattr(getattr(torch.ops, library.ns), name).default

    class Operator(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            with _below():
                output = operator(*args)
            setup(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return backward(ctx, *grads)

    def run(*args: Any) -> Any:
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*args):
            return Operator.apply(*args)
        with _below():
            return operator(*args)

    library.impl(name, run, "Autograd")
