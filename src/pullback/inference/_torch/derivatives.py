"""Derivatives of operators of `torch.library`: `register_autograd`, with less between a call and its kernel.

On a GPU the time of a small call is that of the Python around it, and PyTorch's own registration reads an operator's
schema in every call. Besides, it knows backward passes only: in forward mode (`torch.func.jvp`) derivatives would be
zero without a word.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_compiling

_NOTHING = contextlib.nullcontext()
_transforms_active: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
_modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_is_tracing: Callable[[], bool] = getattr(torch._C, "_is_tracing", lambda: True)
_keeps_graph: Callable[[], bool]
_keeps_graph = getattr(getattr(torch._C, "_autograd", None), "_get_current_graph_task_keep_graph", lambda: True)
_any_requires_grad: Callable[..., bool] = getattr(torch._C, "_any_requires_grad", lambda *args: True)
_PLAIN = (Tensor, torch.nn.Parameter)
function_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 1)
"""How many modes change calls of PyTorch, such as that of `torch.set_default_device`."""
_works: bool | None = None  # until `internals_work` has tried

DIRECT, RECORDED, DISPATCHED = range(3)
"""How a call reaches its kernel: at once; at once, with an entry in the graph of an ordinary backward pass; or through
PyTorch's dispatcher, where something compiles, transforms, traces or records operators, or asks for forward mode.
"""


def route(*args: Any) -> int:
    """How a call with these arguments, the first of which is a tensor, reaches its kernel: read once per call."""
    if is_compiling() or getattr(forward_ad, "_current_level", 0) >= 0 or _transforms_active() or _modes() or _is_tracing():
        return DISPATCHED
    if type(args[0]) not in _PLAIN or args[0].is_neg():  # a view that is negated when it is read, but not by a kernel
        return DISPATCHED
    if not (torch.is_grad_enabled() and _any_requires_grad(*args)):
        return DIRECT
    return RECORDED if _works else DISPATCHED


def is_plain() -> bool:
    """Whether tensors made now are ordinary ones: nothing compiles, transforms, traces or records operators."""
    return not (is_compiling() or _transforms_active() or _modes() or _is_tracing())


def is_finite(x: Tensor) -> bool:
    """Whether all numbers are finite, where looking is free: in ordinary tensors on a CPU, where a finite sum has finite terms
    only. False says nothing.
    """
    # `is_plain`, without a call: an estimator's step comes here several times.
    ordinary = x.is_cpu and not (is_compiling() or _transforms_active() or _modes() or _is_tracing())
    return ordinary and math.isfinite(float(x.detach().sum()))


class Rule(Protocol):
    """The derivative of an operator, in both directions."""

    def keep(self, ctx: Any, args: tuple[Any, ...], output: Any) -> tuple[Tensor, ...]:
        """Keep in the context what the others need, from all arguments and the output; returns the tensors that it saves."""

    def backward(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """From the gradients of the outputs to those of all arguments."""

    def tangent(self, ctx: Any, tangents: tuple[Any, ...]) -> Any:
        """From the tangents of all arguments to those of the outputs."""


Node = TypeVar("Node", bound=type[torch.autograd.Function])


def straight(function: Node) -> Node:
    """A decorator: nodes of the function go backward at once. PyTorch's own look each time which of two methods was defined.

    It replaces a method of a private class of PyTorch's; without that class, nodes are as they were.
    """
    node: Any = getattr(function, "_backward_cls", None)
    if node is not None:
        node.apply = function.backward
    return function


@straight
class _Recorded(torch.autograd.Function):
    """A call on the route RECORDED."""

    @staticmethod
    def forward(ctx: Any, rule: Rule, function: Callable[..., Any], *args: Any) -> Any:
        ctx.rule = rule
        return function(ctx, args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return None, None, *ctx.rule.backward(ctx, grads)


record: Callable[..., Any] = super(torch.autograd.Function, _Recorded).apply
"""`record(rule, function, *args)`: `function(ctx, args)`, with a rule for the backward pass."""


def register(library: torch.library.Library, name: str, rule: Rule) -> None:
    """Register the derivatives of an operator, defined in a library, without defaults and keyword-only arguments."""
    if internals_work():
        _register_by_internals(library, name, rule)
        return
    torch.library.register_autograd(
        f"{library.ns}::{name}",
        lambda ctx, *grads: rule.backward(ctx, grads),
        setup_context=lambda ctx, inputs, output: (rule.keep(ctx, inputs, output), None)[1],
        lib=library,
    )


def _register_by_internals(library: torch.library.Library, name: str, rule: Rule) -> None:
    from torch._functorch.autograd_function import enable_single_level_autograd_function
    from torch.autograd.function import _SingleLevelFunction  # for one transform of torch.func; a `Function` is for all

    operator = getattr(getattr(torch.ops, library.ns), name).default
    below = torch._C._AutoDispatchBelowAutograd

    class Operator(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            with below(), _outer_levels():
                output = operator(*args)
            kept = rule.keep(ctx, args, output)
            if in_forward_mode():
                ctx.save_for_forward(*kept)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return rule.backward(ctx, grads)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with _outer_levels():
                return rule.tangent(ctx, tangents)

    def run(*args: Any) -> Any:
        if in_forward_mode() or (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            with enable_single_level_autograd_function() if transforming() else _NOTHING:
                return Operator.apply(*args)  # type: ignore[attr-defined]
        with below():
            return operator(*args)

    library.impl(name, run, "Autograd")


def apply(function: type[torch.autograd.Function], *args: Any) -> Any:
    """`function.apply(*args)`, of one with a `setup_context` and no defaults: PyTorch reads its signature in every call."""
    if _works and not (is_compiling() or _transforms_active()):
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
    if _works and getattr(forward_ad, "_current_level", 0) >= 0:
        ctx.save_for_forward(*tensors)


def without_tangents(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Tensors as the formula of a tangent reads them: only the transforms around this level differentiate it."""
    return tuple(forward_ad.unpack_dual(x).primal for x in tensors)


def is_last_use(grad: Tensor) -> bool:
    """Whether the backward pass that runs now, with this gradient, frees what was kept, so that it may be written over."""
    return bool(_works) and not (_keeps_graph() or torch.is_grad_enabled() or is_batched(grad))


is_batched: Callable[[Tensor], bool]
is_batched = getattr(getattr(torch._C, "_functorch", None), "is_legacy_batchedtensor", lambda x: True)
"""Whether a gradient stands for several (`is_grads_batched=True`), so that only PyTorch's operators can read it: all, if that
cannot be known.
"""


def may_be_differentiated(x: Tensor) -> bool:
    """Whether a derivative with respect to x may be asked for."""
    return (torch.is_grad_enabled() and x.requires_grad) or getattr(forward_ad, "_current_level", 0) >= 0


def in_forward_mode() -> bool:
    """Whether tensors may have tangents, as inside `torch.func.jvp`."""
    return getattr(forward_ad, "_current_level", 0) >= 0


def refuse_tangents(x: Tensor) -> None:
    """Raise if x has a tangent: the public way would lose it without a word."""
    if forward_ad.unpack_dual(x).tangent is not None:
        raise NotImplementedError(
            f"forward-mode derivatives are not available with PyTorch {torch.__version__}, whose internals are not those that "
            f"pullback knows; use backward mode, or a version that the page on versions of pullback's documentation names"
        )


def internals_work() -> bool:
    """Whether the internals do what this module takes them for: tried once, on an operator that doubles."""
    global _works
    if _works is None:
        _works = os.environ.get("PULLBACK_PUBLIC_TORCH", "") in ("", "0") and _try_internals()
    return _works


def _by_a_transform(double: Callable[..., Tensor]) -> Tensor:
    """The gradient of an operator as `torch.func.grad` takes it, which itself is slow to load."""
    functorch, x = torch._C._functorch, torch.ones(1, device="cpu")
    level = functorch._grad_increment_nesting()
    try:
        x = functorch._wrap_for_grad(x, level)
        functorch.set_inplace_requires_grad_allowed(True)
        x.requires_grad_()
        (gradient,) = torch.autograd.grad(double(x, True), x, create_graph=True)
        return functorch._unwrap_for_grad(gradient, level).detach()
    finally:
        functorch.set_inplace_requires_grad_allowed(False)
        functorch._grad_decrement_nesting()


def _try_internals() -> bool:
    global _works
    library = torch.library.Library("pullback_self_test", "DEF")
    library.define("double(Tensor x, bool flag) -> Tensor")
    library.impl("double", lambda x, flag: 2 * x, "CPU")
    double = torch.ops.pullback_self_test.double.default

    class Double:
        def keep(self, ctx: Any, args: tuple[Any, ...], output: Any) -> tuple[Tensor, ...]:
            ctx.save_for_backward(args[0])
            return args[:1]

        def backward(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
            return 2 * grads[0] * torch.ones_like(ctx.saved_tensors[0]), None

        def tangent(self, ctx: Any, tangents: tuple[Any, ...]) -> Any:
            return 2 * tangents[0]

        def forward(self, ctx: Any, args: tuple[Any, ...]) -> Any:
            self.keep(ctx, args, None)
            return 2 * args[0]

    _works = True  # while trying
    try:
        _register_by_internals(library, "double", Double())
        x = torch.ones(1, requires_grad=True, device="cpu")
        with torch.enable_grad():
            gradients = [torch.autograd.grad(y, x)[0] for y in (double(x, True), record(Double(), Double().forward, x, True))]
            plain = double(torch.ones(1, device="cpu"), False)
            gradients.append(_by_a_transform(double))
        # forward mode is slow to load, so that only its entry points are looked at
        ready = isinstance(forward_ad._current_level, int) and callable(forward_ad._set_fwd_grad_enabled)
        return ready and not transforming() and [*map(float, gradients), float(plain)] == [2.0] * 4
    except Exception:
        return False
