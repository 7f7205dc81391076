"""Families of structures: one declaration each, from which operators, derivatives and dispatch follow.

An operator takes scores `[B, *parts]` (float32 or float64), the sizes of the examples (`[B]` each, int64), further tensors,
static options, and whether to check values. It is registered with `torch.library`, so that `torch.compile` sees an
opaque node with known shapes. Its implementation is the function of its name in `inference/<folder>/<backend>.py`, or,
where a backend has none, in `inference/<folder>/reference.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference._threads import leaving
from pullback.inference.checks import Nouns
from pullback.inference.layout import Layout
from pullback.inference.operations import FUSED, PROJECTION, STANDARD, Kept, Operation, find_and_product
from pullback.inference.torch_seam import derivatives, transforms

__all__ = ["FUSED", "PROJECTION", "STANDARD", "Family", "Nouns", "backend", "backend_of"]

_forced: str | None = None
_library = torch.library.Library("pullback", "DEF")
leaving.watch()  # after it, so that at exit threads have stopped before PyTorch takes the operators away


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Run the operators on `reference`, `cpu` or `cuda`, whatever the device of the tensors: for tests."""
    global _forced
    before, _forced = _forced, name
    try:
        yield
    finally:
        _forced = before


def backend_of(x: Tensor) -> str:
    """The name of the backend that runs on this tensor."""
    return _forced or x.device.type


def _is_one(x: Tensor) -> bool:
    """Whether numbers on the CPU are all 1. Their bytes tell: after inference has filled the caches, each further call of
    PyTorch or NumPy takes a few microseconds.
    """
    found = x.numpy().tobytes()
    return found == _ones(len(found), x.dtype)


@functools.lru_cache(maxsize=16)
def _ones(size: int, dtype: torch.dtype) -> bytes:
    return torch.ones(size // dtype.itemsize, dtype=dtype).numpy().tobytes()


class Family:
    """The structures of one kind. Its operators are attributes: `family.argmax(scores, *sizes, *options, validate)`.

    Args:
        name: of the family; the prefix of its operators.
        layout: of the scores.
        folder: of the implementations in `inference/`; or a function of the operation and the options that picks one.
        nouns: how errors call things.
        options: static arguments of all operations, with their types. An implementation is passed those that it names.
        operations: which there are.
        most_parts: from the shape of the parts to the largest number of them in one structure.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        *,
        folder: str | Callable[[str, dict[str, Any]], str],
        nouns: Nouns | None = None,
        options: Mapping[str, type] | None = None,
        operations: tuple[Operation, ...] = STANDARD,
        most_parts: Callable[[tuple[int, ...]], int] | None = None,
    ) -> None:
        self.name = name
        self.layout = layout
        self.nouns = nouns or Nouns()
        self.options = dict(options or {})
        self.operations = {operation.name: operation for operation in operations}
        self.most_parts = most_parts or math.prod
        self._folder = folder
        self._kernels: dict[tuple[str, str], Callable[..., Any]] = {}
        self._recorded: dict[str, Callable[..., Any] | None] = {}
        for operation in operations:
            setattr(self, operation.name, self._register(operation))

    def __repr__(self) -> str:
        return f"Family({self.name!r}: {', '.join(self.operations)})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the family {self.__dict__.get('name')!r} has no operation {name!r}")

    def call(self, operation: str, *args: Any) -> Any:
        """An operator; its kernel or derivative by itself where PyTorch would only take time to pass the call on."""
        x = args[0]
        found = self._kernels.get((operation, x.device.type))
        if found is not None and derivatives.is_passed_on(x):
            if torch.is_grad_enabled() and x.requires_grad:
                found = self._recorded.get(operation)
            if found is not None:
                return found(*args)
        return getattr(self, operation)(*args)

    def implementation(self, operation: str, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
        """What does an operation: the backend's own function, or the reference's."""
        find = self.operations[operation].find
        if find is not None:
            return find(self, backend, options)
        found = self.function(operation, backend, options) or self.function(operation, "reference", options)
        if found is None:
            raise NotImplementedError(f"neither {backend} nor reference has the operation {self.name}_{operation}")
        return found

    def function(self, operation: str, backend: str, options: tuple[Any, ...]) -> Callable[..., Any] | None:
        """The function of this name in a backend's file, with the options that it names, or None."""
        named = dict(zip(self.options, options, strict=True))
        found = getattr(self.module(self.folder(operation, options), backend), operation, None)
        if found is None:
            return None
        accepted = inspect.signature(found).parameters
        everything = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
        return functools.partial(found, **{k: v for k, v in named.items() if everything or k in accepted})

    def folder(self, operation: str, options: tuple[Any, ...]) -> str:
        """Where an operation with these options is implemented."""
        named = dict(zip(self.options, options, strict=True))
        return self._folder if isinstance(self._folder, str) else self._folder(operation, named)

    def module(self, folder: str, file: str) -> Any:
        """A file of a folder in `inference/`, None if it does not exist."""
        name = f"pullback.inference.{folder}.{file}"
        return importlib.import_module(name) if importlib.util.find_spec(name) else None

    def _register(self, operation: Operation) -> Any:
        name = f"{self.name}_{operation.name}"
        _library.define(name + operation.schema(self._sizes(operation), self.options if operation.sized else {}))
        for key in ("CPU", "CUDA"):
            kernel = self._kernels[operation.name, key.lower()] = self._kernel(operation, key.lower())
            _library.impl(name, kernel, key)
            if operation.name == "marginals":
                self._kernels["marginals_and_product", key.lower()] = self._kernel(operation, key.lower(), find_and_product)
        shapes = operation.shapes if operation.shapes_of is None else functools.partial(operation.shapes_of, self)
        torch.library.register_fake(f"pullback::{name}", shapes, lib=_library)
        if operation.gradient or operation.product or operation.refuses:
            self._differentiate(operation, name)
        transforms.register(_library, name)
        return getattr(torch.ops.pullback, name).default

    def _sizes(self, operation: Operation) -> list[str]:
        return [size.name for size in self.layout.sizes] if operation.sized else []

    def _kernel(self, operation: Operation, device: str, find: Any = None) -> Callable[..., Any]:
        name, sizes = operation.name, len(self._sizes(operation))
        first = len(operation.before)
        static = first + sizes + len(operation.after) + len(operation.numbers)
        known: dict[tuple[Any, ...], Callable[..., Any]] = {}

        def run(*args: Any) -> Any:
            which = (_forced or device, args[static:-1])
            call = known.get(which)
            if call is None:
                call = known[which] = self.implementation(name, *which) if find is None else find(self, *which)
            leaving.enter()
            try:
                return call(*args[:static], validate=args[-1])
            except checks.BadValuesError as error:
                raise ValueError(self.describe(error.status, args[0].shape, args[first : first + sizes])) from None
            finally:
                leaving.leave()

        return run

    def describe(self, status: Tensor, shape: torch.Size, sizes: tuple[Tensor, ...]) -> str:
        """What is wrong with the first example whose status is not OK."""
        example = int(torch.nonzero(status)[0])
        values = {size.name: int(x[example]) for size, x in zip(self.layout.sizes, sizes, strict=True)}
        for index, (name, value) in enumerate(values.items()):
            limit = self.layout.limit(index, shape)
            if limit is None and value < 0:
                return f"{name}[{example}] is {value}; it must be at least 0"
            if limit is not None and not 0 <= value <= limit:
                return f"{name}[{example}] is {value}; scores of {limit} {self.nouns.unit} need {name} from 0 to {limit}"
        known = ", ".join(f"{name.replace('lengths', 'length')} {value}" for name, value in values.items())
        where = f"{self.nouns.example} {example} of the batch" + (f" ({known})" if known else "")
        return f"{where} {self.nouns.say(int(status[example]))}"

    def _differentiate(self, operation: Operation, name: str) -> None:
        """Register the derivatives in the operation's first tensor, or in its last one where it is linear in that."""
        options = len(self.options) if operation.sized else 0
        tensors = len(operation.before) + len(self._sizes(operation)) + len(operation.after)
        statics = len(operation.numbers) + options + 1
        place = tensors - 1 if operation.linear else 0

        def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if not operation.refuses:
                derivatives.keep(ctx, *operation.keep(inputs[:tensors], output))
            ctx.options = (*inputs[len(inputs) - 1 - options : -1], False)
            if not isinstance(output, Tensor):
                ctx.mark_non_differentiable(*output[1:])
                ctx.set_materialize_grads(False)

        def slope(ctx: Any, direction: Any, saved: tuple[Tensor, ...]) -> Tensor:
            if operation.refuses:
                raise NotImplementedError(operation.refuses)
            kept = Kept(self, saved, ctx.options)
            if operation.product is not None:
                known = getattr(ctx, "product", None)
                if known is None or torch.is_grad_enabled() or derivatives.is_batched(direction):
                    return operation.product(kept, direction)
                if derivatives.is_last_use(direction):
                    ctx.product = None  # which keeps memory of its own; PyTorch frees what it has saved
                return known(direction) if derivatives.is_passed_on(direction) else operation.product(kept, direction)
            assert operation.gradient is not None
            return operation.gradient(kept)

        def backward(ctx: Any, grad: Tensor | None, *rest: Any) -> tuple[Any, ...]:
            if grad is None:
                return (None,) * (tensors + statics)
            found = slope(ctx, grad, ctx.saved_tensors)
            if operation.gradient is not None:
                last = operation.kept_gradient and derivatives.is_last_use(grad)
                if not (last and grad.is_cpu and _is_one(grad)):
                    factor = grad.to(found.dtype).reshape(-1, *[1] * self.layout.dims)
                    found = found.mul_(factor) if last else found * factor
            return *[None] * place, found, *[None] * (tensors + statics - place - 1)

        def tangent(ctx: Any, *tangents: Any) -> Any:
            direction, saved = tangents[place], derivatives.without_tangents(ctx.saved_tensors)
            if operation.gradient is None:
                first = slope(ctx, direction, saved)
            else:
                wide = slope(ctx, None, saved).double()
                inner = wide * torch.where(wide != 0, direction, 0.0)  # padding may be NaN
                first = inner.sum(tuple(range(1, inner.dim())))
            outputs = operation.outputs.count("Tensor")
            return first if outputs == 1 else (first, *[None] * (outputs - 1))

        def kernel(ctx: Any, *args: Any) -> Any:
            run = self._kernels.get((f"{operation.name}_and_product", args[0].device.type))
            if run is None:
                return self._kernels[operation.name, args[0].device.type](*args)
            output, ctx.product = run(*args)
            return output

        found = derivatives.register(_library, name, kernel=kernel, setup=setup, backward=backward, tangent=tangent)
        self._recorded[operation.name] = found
