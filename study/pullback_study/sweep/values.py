"""The values of a field: one or a list of them, each of the field's type."""

from __future__ import annotations

import math
import types
import typing
from typing import Any


def alternatives(value: Any, kind: Any) -> list[Any]:
    """What a sweep file says of a field, as a list of values of its type; raises `ValueError` with the reason if it cannot.

    >>> alternatives([1, 0.5], float | None)
    [1.0, 0.5]
    >>> alternatives("ten", int)
    Traceback (most recent call last):
    ValueError: 'ten' is a string; it must be an integer
    """
    many = isinstance(value, list) and not (_is_tuple(kind) and not any(isinstance(item, list) for item in value))
    if not many:
        return [_converted(value, kind)]
    if not value:
        raise ValueError("the list is empty; give at least one value, or leave the field out")
    found = [_converted(item, kind) for item in value]
    repeated = [item for i, item in enumerate(found) if item in found[:i]]
    if repeated:
        raise ValueError(f"{repeated[0]!r} is listed twice")
    return found


def _converted(value: Any, kind: Any) -> Any:
    choices = [choice for choice in _choices(kind) if choice is not types.NoneType]
    for choice in choices:
        if _is_tuple(choice) and isinstance(value, list):
            inner = (typing.get_args(choice) or (Any,))[0]
            return tuple(_converted(item, inner) for item in value)
        if choice is float and isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise ValueError(f"{value} is not a finite number")
            return float(value)  # 1 and 1.0 are the same run
        if type(value) is choice or choice is Any:
            return value
        if typing.get_origin(choice) is typing.Literal and value in typing.get_args(choice):
            return value
    raise ValueError(f"{value!r} is {_name(type(value))}; it must be {' or '.join(_name(c) for c in choices)}")


def _choices(kind: Any) -> tuple[Any, ...]:
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _is_tuple(kind: Any) -> bool:
    return any(choice is tuple or typing.get_origin(choice) is tuple for choice in _choices(kind))


def _name(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(kind)))
    names = {str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "a table"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))
