"""The way from a call to a kernel: an operation of a family, bound once to a backend and options, and its derivative."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pullback.inference._threads import leaving
from pullback.inference._torch import derivatives
from pullback.inference._torch.derivatives import DIRECT, DISPATCHED, RECORDED
from pullback.inference.front.checks import BadValuesError
from pullback.inference.front.operations import Kept, Operation

if TYPE_CHECKING:
    from pullback.inference.front.family import Family

forced: str | None = None


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Run the operators on `reference`, `cpu` or `cuda`, whatever the device of the tensors: for tests."""
    global forced
    before, forced = forced, name
    try:
        yield
    finally:
        forced = before


def backend_of(x: Tensor) -> str:
    """The name of the backend that runs on this tensor."""
    return forced or serving(x.device.type)


@functools.cache
def serving(device: str) -> str:
    """The backend of a device: its own, but the reference on a CPU where kernels cannot be compiled."""
    if device != "cpu":
        return device
    from pullback.inference._numba import usable  # which loads the compiler

    return device if usable.works() else "reference"


def call(
    family: Family,
    operation: str,
    args: tuple[Any, ...],
    options: tuple[Any, ...],
    validate: bool,
    recorded: str = "",
    route: int | None = None,
) -> Any:
    """An operation of tensors and numbers `args`: by its plan, or by its operator where PyTorch has to see that.

    The route is that of the arguments, where it is known: that of the scores, if all others are constant. `recorded` names an
    operation that takes its place where an ordinary backward pass is sure to come, if the family has it: the first result of
    that one is the result.
    """
    scores = args[0]
    if route is None:
        route = derivatives.route(*args)
    if family.derivatives[operation] is None and (scores.requires_grad or route == DISPATCHED):
        args = scores.detach(), *args[1:]
    if route == DISPATCHED:
        return getattr(family, operation)(*args, *options, validate)
    replaced = route == RECORDED and recorded in family.operations
    backend = forced or serving("cpu" if scores.is_cpu else scores.device.type)  # whose name takes longer to ask for
    plan = family.plans[recorded if replaced else operation, options, backend]
    if route == DIRECT or plan.derivative is None:
        return plan.run(args, validate)
    found = derivatives.record(plan.derivative, plan.forward, *args, *options, validate)
    return found[0] if replaced else found


class Plan:
    """An operation of a family with one set of options, on one backend."""

    def __init__(self, family: Family, operation: Operation, options: tuple[Any, ...], backend: str) -> None:
        self.derivative = family.derivatives[operation.name]
        self._family, self._operation, self._options, self._backend = family, operation, options, backend
        self._kernel = family.implementation(operation.name, backend, options)
        first = len(operation.before)
        self._sizes = slice(first, first + len(family.layout.sizes))
        self._given = slice(0, -1 - len(options))

    @functools.cached_property
    def _with_product(self) -> Callable[..., Any] | None:
        """The backend's function that also returns one for the product with the Jacobian, if there is one."""
        name = self._operation.with_product
        return self._family.function(name, self._backend, self._options) if name else None

    def run(self, args: tuple[Any, ...], validate: bool, kernel: Callable[..., Any] | None = None) -> Any:
        """The result for tensors and numbers; errors name the first example whose values are bad."""
        leaving.inside.append(thread := get_ident())
        if leaving.ending:
            leaving.hold(thread)
        try:
            if derivatives.function_modes():  # such as a default device, on which a kernel would make its tensors
                with args[0].device:
                    return (kernel or self._kernel)(*args, validate=validate)
            return (kernel or self._kernel)(*args, validate=validate)
        except BadValuesError as error:
            raise ValueError(self._family.describe(error.status, args[0].shape, args[self._sizes])) from None
        finally:
            leaving.inside.remove(thread)
            leaving.left[thread] = monotonic()

    def forward(self, ctx: Any, args: tuple[Any, ...]) -> Any:
        """The result for all arguments of the operator, with what its derivative needs in the context."""
        assert self.derivative is not None
        given, validate = args[self._given], args[-1]
        product = None
        if self._with_product is None:
            output = self.run(given, validate)
        else:
            output, product = self.run(given, validate, self._with_product)
        self.derivative.keep(ctx, args, output)
        ctx.product = product
        return output


class Plans(dict[tuple[str, tuple[Any, ...], str], Plan]):
    """The plans of a family, by operation, options and backend: each is made when it is first asked for."""

    def __init__(self, family: Family) -> None:
        super().__init__()
        self._family = family

    def forget(self, options: tuple[Any, ...]) -> None:
        """Remove the plans of options that do not come again."""
        for which in [which for which in list(self) if which[1] == options]:
            self.pop(which, None)

    def __missing__(self, which: tuple[str, tuple[Any, ...], str]) -> Plan:
        operation, options, backend = which
        plan = self[which] = Plan(self._family, self._family.operations[operation], options, backend)
        return plan


class Derivative:
    """The derivative of an operation in its first tensor, or in its last one where it is linear in that."""

    def __init__(self, family: Family, operation: Operation) -> None:
        sizes, options = (len(family.layout.sizes), len(family.options)) if operation.sized else (0, 0)
        self._family = family
        self._operation = operation
        self._options = slice(-1 - options, -1)
        self._tensors = len(operation.before) + sizes + len(operation.after)
        self._place = self._tensors - 1 if operation.linear else 0
        self._before = (None,) * self._place
        self._behind = (None,) * (self._tensors + len(operation.numbers) + options - self._place)

    def keep(self, ctx: Any, args: tuple[Any, ...], output: Any) -> tuple[Tensor, ...]:
        operation, kept = self._operation, args[: self._tensors]
        if operation.refuses:
            kept = ()
        elif operation.keep is not None:
            kept = operation.keep(kept, output)
        ctx.save_for_backward(*kept)
        ctx.options, ctx.product, ctx.validate = args[self._options], None, args[-1]
        if not isinstance(output, Tensor):
            ctx.mark_non_differentiable(*output[1:])
            ctx.set_materialize_grads(False)
        return kept

    def backward(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grad: Any = grads[0]
        if grad is None:
            return *self._before, None, *self._behind
        if grad.is_neg():
            grad = grad.resolve_neg()  # kernels read memory
        if self._operation.gradient is None:
            found = self._product(ctx, ctx.saved_tensors, grad)
        else:
            found = self._scaled(self._gradient(ctx, ctx.saved_tensors), grad)
        if not ctx.validate:
            found = _without_failed(found, grad)
        return *self._before, found, *self._behind

    def tangent(self, ctx: Any, tangents: tuple[Any, ...]) -> Any:
        direction, saved = tangents[self._place], derivatives.without_tangents(ctx.saved_tensors)
        if self._operation.gradient is None:
            first = self._product(ctx, saved, direction)
        else:
            wide = self._gradient(ctx, saved).double()
            inner = wide * torch.where(wide != 0, direction, 0.0)  # padding may be NaN
            first = inner.sum(tuple(range(1, inner.dim())))
        outputs = self._operation.outputs.count("Tensor")
        return first if outputs == 1 else (first, *[None] * (outputs - 1))

    def _product(self, ctx: Any, saved: tuple[Tensor, ...], direction: Tensor) -> Tensor:
        """The Jacobian times a direction: by the function that the call itself has left, or, if that has to be known of for
        derivatives of its own, by another operation.
        """
        if self._operation.refuses:
            raise NotImplementedError(self._operation.refuses)
        known, batched = ctx.product, derivatives.is_batched(direction)
        if known is None or batched or torch.is_grad_enabled() or derivatives.route(direction) != DIRECT:
            family, name = self._family, self._operation.product
            options = ctx.options if family.operations[name].sized else ()
            if batched:
                return getattr(family, name)(*saved, direction, *options, False)
            return call(family, name, (*saved, direction), options, False)
        if derivatives.is_last_use(direction):
            ctx.product = None  # which keeps memory of its own; PyTorch frees what it has saved
        if derivatives.function_modes():
            with direction.device:
                return known(direction)
        return known(direction)

    def _gradient(self, ctx: Any, saved: tuple[Tensor, ...]) -> Tensor:
        assert self._operation.gradient is not None
        return self._operation.gradient(Kept(self._family, saved, ctx.options))

    def _scaled(self, gradient: Tensor, grad: Tensor) -> Tensor:
        """The gradient of each example, times a number."""
        last = self._operation.kept_gradient and derivatives.is_last_use(grad)
        if last and grad.is_cpu and _is_one(grad):
            return gradient
        factor = grad.to(gradient.dtype).reshape(-1, *[1] * self._family.layout.dims)
        return gradient.mul_(factor) if last else gradient * factor


def _without_failed(found: Tensor, grad: Tensor) -> Tensor:
    """A gradient `[B, *parts]` that came from another one, 0 for the examples for which that is 0: one that failed, whose
    results are NaN, and that a loss leaves out, must not reach weights that all examples share.
    """
    unused = grad == 0 if grad.dim() == 1 else ~grad.flatten(1).any(1)
    unused = unused.reshape(-1, *[1] * (found.dim() - 1))
    if torch.is_grad_enabled() or derivatives.in_forward_mode() or derivatives.transforming():
        return torch.where(unused, found.nan_to_num(0.0), found)  # 0 times what is finite has a derivative
    return found.masked_fill(unused, 0.0)


def _is_one(x: Tensor) -> bool:
    """Whether numbers on the CPU are all 1. Their bytes tell: after inference has filled the caches, each further call of
    PyTorch or NumPy takes a few microseconds.
    """
    found = x.numpy().tobytes()
    return found == _ones(len(found), x.dtype)


@functools.lru_cache(maxsize=16)
def _ones(size: int, dtype: torch.dtype) -> bytes:
    return torch.ones(size // dtype.itemsize, dtype=dtype, device="cpu").numpy().tobytes()
