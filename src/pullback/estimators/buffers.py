"""Keeps the buffers of a decoder (batch-norm's running statistics) as they are over a call.

A decoder is a function of the user's. The modules it runs are taken to be those it *names*: itself, the object it is
a method of, those among its closure, its defaults and the globals it refers to, and those directly inside an object
among these; functions of the same Python module are followed. Hooks on modules would see more, and would make
`torch.compile` compile a decoder anew at each call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn


@contextlib.contextmanager
def buffers_kept(function: Callable[..., Any]) -> Iterator[None]:
    """Give the buffers of the modules that a function names, where in training mode, their values back afterwards."""
    parts = {part for module in modules_named_by(function) for part in module.modules() if part.training}
    kept = [(buffer, buffer.clone()) for part in parts for buffer in part.buffers(recurse=False)]
    try:
        yield
    finally:
        for buffer, value in kept:
            # `.data`: a graph that waits for its backward pass may have saved the buffer, whose value is unchanged.
            buffer.data.copy_(value)


def modules_named_by(function: Callable[..., Any]) -> set[nn.Module]:
    """The modules that a function names."""
    found: set[nn.Module] = set()
    seen: set[int] = set()
    home: str | None = None
    waiting: list[Any] = [function]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or value is None or isinstance(value, Tensor):
            continue
        seen.add(id(value))
        if isinstance(value, nn.Module):
            found.add(value)
        elif isinstance(value, functools.partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
        elif inspect.ismethod(value):
            waiting += [value.__self__, value.__func__]
        elif inspect.isfunction(value):
            home = home or value.__module__
            waiting += _names(value) if value.__module__ == home else []
        else:
            found |= {inside for inside in _inside(value) if isinstance(inside, nn.Module)}
    return found


def _names(function: Any) -> list[Any]:
    try:
        named = inspect.getclosurevars(function)
    except ValueError:  # a variable of the closure that has no value yet
        return []
    wrapped = getattr(function, "__wrapped__", None)
    return [*named.nonlocals.values(), *named.globals.values(), *(function.__defaults__ or ()), wrapped]


def _inside(value: Any) -> list[Any]:
    if inspect.ismodule(value) or inspect.isclass(value):
        return []
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    return list(getattr(value, "__dict__", {}).values())
