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

GAMMA_SCALE: dict[str, Any] = {
    "help": "The gradient that the step size multiplies. `paper`: that of the mean loss, as in the paper's code, without "
    "rescaling the surrogate; `example`: that of one example's loss.",
    "shown": "paper",
    "choices": ("paper", "example"),
}


@dataclass(frozen=True)
class Option:
    """A field of a config, as commands and sweep files see it."""

    name: str
    kind: Any
    default: Any  # None where the task or the estimator decides, or it does not apply
    help: str  # for people
    shown: str | None = None  # how the default is described, where it is not a plain value
    choices: tuple[str, ...] | None = None  # the values it may have
    least: float | None = None  # the smallest it may be
    positive: bool = False  # whether it must be above zero
    flags: str | None = None  # the names of a yes-or-no option, such as `--projective/--non-projective`
    hidden: bool = False  # not an option of the command line or of sweep files: the task decides it

    @property
    def types(self) -> list[Any]:
        """What it may be, apart from None."""
        union = typing.get_origin(self.kind) in (typing.Union, types.UnionType)
        return [choice for choice in (typing.get_args(self.kind) if union else (self.kind,)) if choice is not types.NoneType]

    def convert(self, value: Any) -> Any:
        """The value as the field's type; raises `ValueError` if it is not one.

        >>> Option("rate", float | None, None, "").convert(1)
        1.0
        """
        if value is None and self.types != [self.kind]:
            return None
        for kind in self.types:
            if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
                if not math.isfinite(value):
                    raise ValueError(f"{self.name} is {value}, which is not a finite number")
                value = float(value)  # 1 and 1.0 are the same run
            if type(value) is kind:
                break
        else:
            wanted = " or ".join(_NAMES[kind] for kind in self.types)
            raise ValueError(f"{self.name} is {value!r}, {_NAMES.get(type(value), type(value).__name__)}; it must be {wanted}")
        if self.choices is not None and value not in self.choices:
            raise ValueError(f"{self.name} is {value!r}; {nearest(str(value), self.choices)}")
        if self.positive and not value > 0:
            raise ValueError(f"{self.name} is {value}; it must be positive")
        if self.least is not None and value < self.least:
            raise ValueError(f"{self.name} is {value}; it must be at least {self.least:g}")
        return value

    def alternatives(self, value: Any) -> list[Any]:
        """What a sweep file says of the field, one value or a list of them, as values of its type."""
        found = [self.convert(item) for item in (value if isinstance(value, list) else [value])]
        if not found:
            raise ValueError(f"{self.name} has an empty list; give at least one value, or leave the field out")
        if repeated := [item for i, item in enumerate(found) if item in found[:i]]:
            raise ValueError(f"{self.name} has {repeated[0]!r} twice")
        return found


def option(default: Any = None, *, help: str, **about: Any) -> Any:
    """A field of a config; the other arguments are those of `Option`."""
    return dataclasses.field(default=default, metadata={"help": help, **about})


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
        object.__setattr__(config, name, each.convert(getattr(config, name)))


@dataclass(frozen=True)
class EstimatorConfig:
    """A method, a seed, and the settings that every table searches over. `Task.configure` fills in what is not given.

    Fields that do not apply to the method are None, so that equal runs have equal identities.
    """

    estimator: str = option("", help="An estimator or a baseline; `pullback estimators` lists them.", shown="")
    seed: int = option(0, help="The seed of data, initialisation and noise.", least=0)
    learning_rate: float | None = option(
        None, help="The learning rate of Adam.", shown="the best known for the estimator", positive=True
    )
    step_size: float | None = option(
        None, help="The step size eta of the inner steps.", shown="the best known for the estimator", positive=True
    )
    inner_steps: int | None = option(None, help="The number k of inner steps.", shown="1", least=1)

    def __post_init__(self) -> None:
        check(self)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: the nearest known one, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"


_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "a table"}
