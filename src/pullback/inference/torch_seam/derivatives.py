"""Derivatives of operators of `torch.library`: `register_autograd`, with less between a call and its kernel.

On a GPU the time of a small call is that of the Python around it, and PyTorch's own registration reads an operator's
schema in every call. Besides, it knows backward passes only: in forward mode (`torch.func.jvp`) derivatives would be
zero without a word.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_compiling

Setup = Callable[..., None]
Backward = Callable[..., tuple[Any, ...]]
Tangent = Callable[..., Any]
_NOTHING = contextlib.nullcontext()
_transforms_active: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def register(
    library: torch.library.Library, name: str, *, kernel: Any, setup: Setup, backward: Backward, tangent: Tangent
) -> Callable[..., Any] | None:
    """Register the derivatives of an operator without defaults and keyword-only arguments.

    Returns a shorter way to it, where `is_passed_on` and the first argument is differentiated, if there is one.

    Args:
        library: where the operator is defined.
        name: the operator's name in it.
        kernel: from the context and the arguments to what the operator does, where `is_passed_on`.
        setup: keeps in the context what the others need (`keep`), from the arguments and the output.
        backward: from the context and the gradients of the outputs to those of all arguments.
        tangent: from the context and the tangents of all arguments to those of the outputs.
    """
    if internals_work():
        return _register_by_internals(library, name, kernel, setup, backward, tangent)
    qualified = f"{library.ns}::{name}"
    torch.library.register_autograd(
        qualified, backward, setup_context=lambda ctx, inputs, output: setup(ctx, inputs, output), lib=library
    )
    return None


def _register_by_internals(
    library: torch.library.Library, name: str, kernel: Any, setup: Setup, backward: Backward, tangent: Tangent
) -> Callable[..., Any]:
    from torch._functorch.autograd_function import enable_single_level_autograd_function

    operator = getattr(getattr(torch.ops, library.ns), name).default
    below = torch._C._AutoDispatchBelowAutograd

    class Operator(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            with below(), _outer_levels():
                output = operator(*args)
            setup(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return backward(ctx, *grads)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with _outer_levels():
                return tangent(ctx, *tangents)

    class Direct(Operator):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            output = kernel(ctx, *args)
            setup(ctx, args, output)
            return output

    record = super(torch.autograd.Function, Operator).apply  # at one level of torch.func

    def run(*args: Any) -> Any:
        if in_forward_mode() or (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            with enable_single_level_autograd_function() if transforming() else _NOTHING:
                return record(*args)
        with below():
            return operator(*args)

    library.impl(name, run, "Autograd")
    return super(torch.autograd.Function, Direct).apply


def apply(function: type[torch.autograd.Function], *args: Any) -> Any:
    """`function.apply(*args)`, of one with a `setup_context` and no defaults: PyTorch reads its signature in every call."""
    if not is_compiling() and internals_work() and not transforming():
        return super(torch.autograd.Function, function).apply(*args)  # type: ignore[misc]
    return function.apply(*args)


@contextlib.contextmanager
def _as_outside() -> Iterator[None]:
    """Autograd as it is outside of a Function, for the transforms of torch.func around this one."""
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
        yield


def _outer_levels() -> AbstractContextManager[None]:
    return _as_outside() if transforming() else _NOTHING


def transforming() -> bool:
    """Whether a transform of torch.func is active."""
    return _transforms_active()


def keep(ctx: Any, *tensors: Tensor) -> None:
    """Keep tensors for derivatives in either direction; they are the context's `saved_tensors`."""
    ctx.save_for_backward(*tensors)
    if internals_work() and in_forward_mode():
        ctx.save_for_forward(*tensors)


def without_tangents(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Tensors as the formula of a tangent reads them: only the transforms around this level differentiate it."""
    return tuple(forward_ad.unpack_dual(x).primal for x in tensors)


def is_last_use(grad: Tensor) -> bool:
    """Whether the backward pass that runs now, with this gradient, frees what was kept, so that it may be written over."""
    keeps = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return keeps is not None and internals_work() and not (torch.is_grad_enabled() or is_batched(grad) or keeps())


_batched: Callable[[Tensor], bool] = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda x: False)


def is_batched(grad: Tensor) -> bool:
    """Whether a gradient stands for several (`is_grads_batched=True`), so that only PyTorch's operators can read it."""
    return _batched(grad)


def is_ordinary() -> bool:
    """Whether neither forward mode, nor a transform of torch.func, nor compilation sees the calls that are made now."""
    return not (in_forward_mode() or _transforms_active() or is_compiling())


_modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)


def is_passed_on(x: Tensor) -> bool:
    """Whether PyTorch would only pass a call with x on to its derivative or kernel: nothing transforms or records it."""
    return type(x) is Tensor and is_ordinary() and _modes() == 0 and not torch.jit.is_tracing()


def records_gradient(x: Tensor) -> bool:
    """Whether x is differentiated by the ordinary backward pass, and by nothing else."""
    return torch.is_grad_enabled() and x.requires_grad and is_ordinary()


def may_be_differentiated(x: Tensor) -> bool:
    """Whether a derivative with respect to x may be asked for."""
    return in_forward_mode() or (torch.is_grad_enabled() and x.requires_grad)


def in_forward_mode() -> bool:
    """Whether tensors may have tangents, as inside `torch.func.jvp`."""
    return getattr(forward_ad, "_current_level", 0) >= 0


def refuse_tangents(x: Tensor) -> None:
    """Raise if x has a tangent: the public way would lose it without a word."""
    if forward_ad.unpack_dual(x).tangent is not None:
        raise NotImplementedError(
            f"forward-mode derivatives are not available with PyTorch {torch.__version__}: pullback knows the internals of "
            f"the versions that its pyproject.toml names; use backward mode, or one of those versions"
        )


_works: bool | None = None


def internals_work() -> bool:
    """Whether the internals do what this module takes them for: tried once, on an operator that doubles."""
    global _works
    if _works is None:
        _works = os.environ.get("PULLBACK_PUBLIC_TORCH", "") in ("", "0") and _try_internals()
    return _works


def _try_internals() -> bool:
    global _works
    library = torch.library.Library("pullback_self_test", "DEF")
    library.define("double(Tensor x, bool flag) -> Tensor")
    library.impl("double", lambda x, flag: 2 * x, "CPU")
    double = torch.ops.pullback_self_test.double.default
    rule: dict[str, Any] = {
        "kernel": double,
        "setup": lambda ctx, inputs, output: keep(ctx, inputs[0]),
        "backward": lambda ctx, grad: (2 * grad * torch.ones_like(ctx.saved_tensors[0]), None),
        "tangent": lambda ctx, tangent, _: 2 * tangent,
    }
    _works = True  # for `keep`, while trying
    try:
        _register_by_internals(library, "double", **rule)
        x = torch.ones(1, requires_grad=True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(double(x, True), x)
            plain = double(torch.ones(1), False)
        # forward mode is slow to load, so that only its entry points are looked at
        ready = isinstance(forward_ad._current_level, int) and callable(forward_ad._set_fwd_grad_enabled)
        return ready and not transforming() and float(gradient) == float(plain) == 2.0
    except Exception:
        return False
