"""Small objects that can stand in a config: printable, comparable, and a dict and back."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor


class Configured:
    """An object that is fully described by the arguments of its `__init__`, kept as attributes of the same names.

    Two objects are equal when they have the same type and the same arguments; those with state (`Stateful`) are equal only
    to themselves, and `same_options` compares their arguments. An option named in `_unlisted` is left out of the repr
    and the dict while it has the value given there.

    >>> from pullback import SPIGOT, Estimator
    >>> SPIGOT(step_size=0.1).to_dict()
    {'type': 'SPIGOT', 'step_size': 0.1, 'steps': 1}
    >>> Estimator.from_dict({"type": "SPIGOT", "step_size": 0.1, "steps": 1})
    SPIGOT(step_size=0.1, steps=1)
    """

    _types: ClassVar[dict[str, type[Configured]]] = {}
    _unlisted: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Configured._types[cls.__name__] = cls

    def options(self) -> dict[str, Any]:
        """The arguments that make this object again, by name."""
        found = {name: getattr(self, name) for name in _parameters(type(self))}
        return {
            name: value for name, value in found.items() if not (name in self._unlisted and _same(value, self._unlisted[name]))
        }

    def to_dict(self) -> dict[str, Any]:
        """A dict of plain values, for JSON: the type's name and its options, nested where an option is an object."""
        return {"type": type(self).__name__} | {name: _plain(self, name, value) for name, value in self.options().items()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Self:
        """The object that `to_dict` described."""
        options = dict(description)
        found = _type_named(options.pop("type", None), cls)
        unknown = options.keys() - _parameters(found).keys()
        if unknown:
            raise ValueError(f"{found.__name__} has no option {sorted(unknown)}; its options are {list(_parameters(found))}")
        return found(**{name: _object(value) for name, value in options.items()})

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"{type(self).__name__}({inside})"

    def same_options(self, other: object) -> bool:
        """Whether another object has the same type and the same options, those of nested objects included.

        State is not compared.

        >>> from pullback import AdaptiveIMLE
        >>> AdaptiveIMLE(rate=0.1).same_options(AdaptiveIMLE(rate=0.1))
        True
        """
        return self._compared(other, _alike)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, _same) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        values = ((name, value) for name, value in self.options().items() if not isinstance(value, Tensor))
        return hash((type(self).__name__, *values))

    def _compared(self, other: object, same: Callable[[Any, Any], bool]) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = self.options(), other.options()  # type: ignore[attr-defined]
        return mine.keys() == theirs.keys() and all(same(mine[name], theirs[name]) for name in mine)


def nearest(name: str, known: list[str]) -> str:
    """A hint for a mistyped name: the nearest known one, or all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"


def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    return {name: p for name, p in inspect.signature(kind.__init__).parameters.items() if name != "self"}  # type: ignore[misc]


def _type_named(name: object, wanted: type) -> Any:
    known = [known for known, kind in Configured._types.items() if issubclass(kind, wanted)]
    if name not in known:
        hint = nearest(str(name), known) if name is not None else "to_dict() puts the class's name there"
        raise ValueError(f"'type' is {name!r}, not the name of a known {wanted.__name__}; {hint}")
    return Configured._types[str(name)]


def _plain(owner: Configured, option: str, value: Any) -> Any:
    if isinstance(value, Configured):
        return value.to_dict()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    what = "a tensor" if isinstance(value, Tensor) else repr(value)
    raise TypeError(
        f"{type(owner).__name__}.to_dict(): option {option!r} is {what}, which cannot be saved in a config; "
        f"use a number, or keep this object out of the config and build it in code"
    )


def _object(value: Any) -> Any:
    return Configured.from_dict(value) if isinstance(value, Mapping) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and torch.equal(a, b)
    return bool(a == b)


def _alike(a: Any, b: Any) -> bool:
    return a.same_options(b) if isinstance(a, Configured) else _same(a, b)
