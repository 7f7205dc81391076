"""Derivatives of operators of `torch.library`: `register_autograd`, with less between a call and its kernel.

On a GPU the time of a small call is that of the Python around it, and PyTorch's own registration reads an operator's
schema in every call. Besides, it knows backward passes only: in forward mode (`torch.func.jvp`) derivatives would be
zero without a word.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad

_NOTHING = contextlib.nullcontext()
_below = torch._C._AutoDispatchBelowAutograd


def register(
    library: torch.library.Library,
    name: str,
    *,
    setup: Callable[..., None],
    backward: Callable[..., tuple[Any, ...]],
    tangent: Callable[..., Any],
) -> None:
    """Register the derivatives of an operator without defaults and keyword-only arguments.

    Args:
        library: where the operator is defined.
        name: the operator's name in it.
        setup: keeps in the context what the others need (`keep`), from the arguments and the output.
        backward: from the context and the gradients of the outputs to those of all arguments.
        tangent: from the context and the tangents of all arguments to those of the outputs.
    """
    operator = getattr(getattr(torch.ops, library.ns), name).default

    class Operator(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            with _below(), _outer_levels():
                output = operator(*args)
            setup(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return backward(ctx, *grads)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return tangent(ctx, *tangents)

    record = super(torch.autograd.Function, Operator).apply  # at one level of torch.func

    def run(*args: Any) -> Any:
        if in_forward_mode() or (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            with _one_level():
                return record(*args)
        with _below():
            return operator(*args)

    library.impl(name, run, "Autograd")


@contextlib.contextmanager
def _transforming() -> Iterator[None]:
    """Autograd as it is outside of a Function, for the transforms of torch.func around this one."""
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
        yield


def _outer_levels() -> AbstractContextManager[None]:
    return _transforming() if torch._C._are_functorch_transforms_active() else _NOTHING


def _one_level() -> AbstractContextManager[None]:
    return enable_single_level_autograd_function() if torch._C._are_functorch_transforms_active() else _NOTHING


def keep(ctx: Any, *tensors: Tensor) -> None:
    """Keep tensors for derivatives in either direction; they are the context's `saved_tensors`."""
    ctx.save_for_backward(*tensors)
    if in_forward_mode():
        ctx.save_for_forward(*tensors)


def may_be_differentiated(x: Tensor) -> bool:
    """Whether a derivative with respect to x may be asked for."""
    return in_forward_mode() or (torch.is_grad_enabled() and x.requires_grad)


def in_forward_mode() -> bool:
    """Whether tensors may have tangents, as inside `torch.func.jvp`."""
    return forward_ad._current_level >= 0
