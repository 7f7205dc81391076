"""Configs: a frozen dataclass whose fields say all there is to know about an option.

Checks, options of the command line and types in sweep files derive from the fields, so that an option is written once:

    steps: int = option(10_000, help="Updates.", least=1)
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


def option(
    default: Any = None,
    *,
    help: str,
    shown: str | None = None,
    choices: tuple[str, ...] | None = None,
    least: float | None = None,
    positive: bool = False,
    flags: str | None = None,
    hidden: bool = False,
) -> Any:
    """A field of a config.

    Args:
        default: its value where nothing is given; None where the task or the estimator decides, or it does not apply.
        help: for people.
        shown: how the default is described, where it is not a plain value.
        choices: the values it may have.
        least: the smallest it may be.
        positive: whether it must be above zero.
        flags: the names of a yes-or-no option, such as `--projective/--non-projective`.
        hidden: not an option of the command line or of sweep files: the task decides it.
    """
    about = {"help": help, "shown": shown, "choices": choices, "least": least, "positive": positive, "flags": flags}
    return dataclasses.field(default=default, metadata={**about, "hidden": hidden})


@dataclass(frozen=True)
class Option:
    """A field of a config, as commands and sweep files see it."""

    name: str
    kind: Any
    default: Any
    help: str
    shown: str | None
    choices: tuple[str, ...] | None
    least: float | None
    positive: bool
    flags: str | None
    hidden: bool

    @property
    def types(self) -> list[Any]:
        """What it may be, apart from None."""
        return [choice for choice in _choices(self.kind) if choice is not types.NoneType]

    def convert(self, value: Any) -> Any:
        """The value as the field's type; raises `ValueError` if it is not one.

        >>> Option("rate", float | None, None, "", None, None, None, True, None, False).convert(1)
        1.0
        """
        converted = _converted(value, self.kind)
        if converted is None:
            return None
        if self.choices is not None and converted not in self.choices:
            raise ValueError(f"{self.name} is {value!r}; {nearest(str(value), self.choices)}")
        if self.positive and not converted > 0:
            raise ValueError(f"{self.name} is {value}; it must be positive")
        if self.least is not None and converted < self.least:
            raise ValueError(f"{self.name} is {value}; it must be at least {self.least:g}")
        return converted


@functools.cache
def options(config_type: Any) -> dict[str, Option]:
    """The fields of a config by name."""
    kinds = typing.get_type_hints(config_type)
    found = {}
    for field in dataclasses.fields(config_type):
        if field.default is dataclasses.MISSING or "help" not in field.metadata:
            raise TypeError(f"{config_type.__name__}.{field.name} needs a default and a help text: use option(...)")
        found[field.name] = Option(field.name, kinds[field.name], field.default, **field.metadata)
    return found


def check(config: Any) -> None:
    """Raises `ValueError` for a field of the wrong type or out of its range; puts 1.0 in the place of 1 for a float."""
    kind: Any = type(config)
    for name, each in options(kind).items():
        value = getattr(config, name)
        try:
            object.__setattr__(config, name, each.convert(value))
        except TypeError as error:
            raise ValueError(f"{name} is {error}") from None


def alternatives(value: Any, field: Option) -> list[Any]:
    """What a sweep file says of a field, one value or a list of them, as values of its type."""
    many = isinstance(value, list) and not (_is_tuple(field.kind) and not any(isinstance(item, list) for item in value))
    try:
        if not many:
            return [field.convert(value)]
        if not value:
            raise ValueError(f"{field.name} has an empty list; give at least one value, or leave the field out")
        found = [field.convert(item) for item in value]
    except TypeError as error:
        raise ValueError(f"{field.name} is {error}") from None
    repeated = [item for i, item in enumerate(found) if item in found[:i]]
    if repeated:
        raise ValueError(f"{field.name} has {repeated[0]!r} twice")
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: the nearest known one, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"


def _converted(value: Any, kind: Any) -> Any:
    """Raises `TypeError` with a description of the value and of what was expected."""
    if value is None and types.NoneType in _choices(kind):
        return None
    allowed = [choice for choice in _choices(kind) if choice is not types.NoneType]
    for choice in allowed:
        if _is_tuple(choice) and isinstance(value, list | tuple):
            inner = (typing.get_args(choice) or (Any,))[0]
            return tuple(_converted(item, inner) for item in value)
        if choice is float and isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise TypeError(f"{value}, which is not a finite number")
            return float(value)  # 1 and 1.0 are the same run
        if type(value) is choice or choice is Any:
            return value
    raise TypeError(f"{value!r}, {_name(type(value))}; it must be {' or '.join(_name(choice) for choice in allowed)}")


def _choices(kind: Any) -> tuple[Any, ...]:
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _is_tuple(kind: Any) -> bool:
    return any(choice is tuple or typing.get_origin(choice) is tuple for choice in _choices(kind))


def _name(kind: Any) -> str:
    names = {str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "a table"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))
