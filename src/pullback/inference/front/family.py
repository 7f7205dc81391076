"""Families of structures: one declaration each, from which operators, derivatives and dispatch follow.

An operator takes scores `[B, *parts]` (float32 or float64), the sizes of the examples (`[B]` each, int64), further tensors,
static options, and whether to check values. It is registered with `torch.library`, so that `torch.compile` sees an
opaque node with known shapes. Its implementation is the function of its name in `inference/<folder>/<backend>.py`, or,
where a backend has none, in `inference/<folder>/reference.py`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from pullback.inference._threads import leaving
from pullback.inference._torch import derivatives, transforms
from pullback.inference.front import plan
from pullback.inference.front.checks import Nouns
from pullback.inference.front.layout import Layout
from pullback.inference.front.operations import FUSED, PROJECTION, STANDARD, Operation
from pullback.inference.front.plan import Derivative, Plans, backend, backend_of

__all__ = ["FUSED", "PROJECTION", "STANDARD", "Family", "Nouns", "backend", "backend_of"]

_library = torch.library.Library("pullback", "DEF")
leaving.watch()  # after it, so that at exit threads have stopped before PyTorch takes the operators away


class Family:
    """The structures of one kind. Its operators are attributes: `family.argmax(scores, *sizes, *options, validate)`.

    Args:
        name: of the family; the prefix of its operators.
        layout: of the scores.
        folder: of the implementations in `inference/`; or a function of the operation and the options that picks one.
        nouns: how errors call things.
        options: static arguments of all operations, with their types. An implementation is passed those that it names.
        operations: which there are.
        implementations: from the name of a backend to what has its functions as attributes, instead of a folder.
        most_parts: from the shape of the parts and the options to the largest number of parts of a structure.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        *,
        folder: str | Callable[[str, dict[str, Any]], str] = "",
        implementations: Callable[[str], Any] | None = None,
        nouns: Nouns | None = None,
        options: Mapping[str, type] | None = None,
        operations: tuple[Operation, ...] = STANDARD,
        most_parts: Callable[..., int] | None = None,
    ) -> None:
        self.name = name
        self.layout = layout
        self.nouns = nouns or Nouns()
        self.options = dict(options or {})
        self.operations = {operation.name: operation for operation in operations}
        self.most_parts = most_parts or _all
        self._folder, self._implementations = folder, None if implementations is None else functools.cache(implementations)
        self.plans = Plans(self)
        self.derivatives = {
            operation.name: Derivative(self, operation) if operation.is_differentiable else None for operation in operations
        }
        for operation in operations:
            setattr(self, operation.name, self._register(operation))

    def __repr__(self) -> str:
        return f"Family({self.name!r}: {', '.join(self.operations)})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the family {self.__dict__.get('name')!r} has no operation {name!r}")

    def call(self, operation: str, *args: Any, options: tuple[Any, ...], validate: bool) -> Any:
        """An operation of tensors and numbers; see `plan.call`."""
        return plan.call(self, operation, args, options, validate)

    def implementation(self, operation: str, backend: str, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Returns the function of an operation: the backend's own, or the reference's."""
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
        """A file of a folder in `inference/`, None if it does not exist, or the family's own implementations."""
        if self._implementations is not None:
            return self._implementations(file)
        name = f"pullback.inference.{folder}.{file}"
        return importlib.import_module(name) if importlib.util.find_spec(name) else None

    def describe(self, status: Tensor, shape: torch.Size, sizes: tuple[Tensor, ...]) -> str:
        """Returns the error text for the first example whose status is not OK."""
        example = int(torch.nonzero(status)[0])
        given = zip(self.layout.sizes, sizes, strict=True)
        values = {size.name: int(x[example]) for size, x in given if not size.dims and size.told}
        for index, size in enumerate(self.layout.sizes):
            if size.name not in values:
                continue
            name, value = size.name, values[size.name]
            limit = self.layout.limit(index, shape)
            if limit is None and value < 0:
                return f"{name}[{example}] is {value}; it must be at least 0"
            if limit is not None and not 0 <= value <= limit:
                return f"{name}[{example}] is {value}; scores of {limit} {self.nouns.unit} need {name} from 0 to {limit}"
        known = ", ".join(f"{name.replace('lengths', 'length')} {value}" for name, value in values.items())
        where = f"{self.nouns.example} {example} of the batch" + (f" ({known})" if known else "")
        return f"{where} {self.nouns.say(int(status[example]))}"

    def _register(self, operation: Operation) -> Any:
        name, sizes, options = f"{self.name}_{operation.name}", [size.name for size in self.layout.sizes], self.options
        if not operation.sized:
            sizes, options = [], {}
        _library.define(name + operation.schema(sizes, options))
        for key in ("CPU", "CUDA"):
            _library.impl(name, self._by_plan(operation.name, len(options), key.lower()), key)
        shapes = operation.shapes if operation.shapes_of is None else functools.partial(operation.shapes_of, self)
        torch.library.register_fake(f"pullback::{name}", shapes, lib=_library)
        derivative = self.derivatives[operation.name]
        if derivative is not None:
            derivatives.register(_library, name, derivative)
        transforms.register(_library, name)
        return getattr(torch.ops.pullback, name).default

    def _by_plan(self, operation: str, options: int, device: str) -> Callable[..., Any]:
        static = -1 - options

        def run(*args: Any) -> Any:
            return self.plans[operation, args[static:-1], plan.forced or plan.serving(device)].run(args[:static], args[-1])

        return run


def _all(shape: tuple[int, ...], *options: Any) -> int:
    return math.prod(shape)
