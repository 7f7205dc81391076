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
_HUGE = 1 << 63
_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


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

    @functools.cached_property
    def types(self) -> list[Any]:
        """What it may be, apart from None."""
        return [each for each in typing.get_args(self.kind) or (self.kind,) if each is not types.NoneType]

    def convert(self, value: Any) -> Any:
        """The value as the field's type; raises `ValueError` if it is not one."""
        if value is None and self.types != [self.kind]:
            return None
        if float in self.types and type(value) is int and abs(value) < _HUGE:
            value = float(value)  # 1 and 1.0 are the same run
        wrong = ""
        if type(value) is int and abs(value) >= _HUGE:
            wrong = "an integer of more than 64 bits"
        elif type(value) not in self.types:
            wanted = " or ".join(_NAMES[kind] for kind in self.types)
            wrong = f"{value!r}, {_NAMES.get(type(value), type(value).__name__)}; it must be {wanted}"
        elif type(value) is float and not math.isfinite(value):
            wrong = f"{value}, which is not a finite number"
        elif self.choices is not None and value not in self.choices:
            wrong = f"{value!r}; {nearest(str(value), self.choices)}"
        elif self.positive and not value > 0:
            wrong = f"{value}; it must be positive"
        elif self.least is not None and value < self.least:
            wrong = f"{value}; it must be at least {self.least:g}"
        if wrong:
            raise ValueError(f"{self.name} is {wrong}")
        return value


def option(default: Any = None, *, help: str, **about: Any) -> Any:
    """A field of a config; the other arguments are those of `Option`."""
    return dataclasses.field(default=default, metadata={"help": help, **about})


@functools.cache
def options(config_type: Any) -> dict[str, Option]:
    """The fields of a config by name."""
    kinds = typing.get_type_hints(config_type)
    fields = {each.name: each for each in dataclasses.fields(config_type)}
    return {name: Option(name, kinds[name], each.default, **each.metadata) for name, each in fields.items()}


@dataclass(frozen=True)
class EstimatorConfig:
    """A method, a seed, and the settings that every table searches over. `Task.configure` fills in what is not given.

    Fields that do not apply to the method are None, so that equal runs have equal identities.
    """

    estimator: str = option("", help="An estimator or a baseline; `pullback estimators` lists them.  [required]", shown="")
    seed: int = option(0, help="The seed of data, initialisation and noise.", least=0)
    learning_rate: float | None = option(
        None, help="The learning rate of Adam.", shown="the best known for the estimator", positive=True
    )
    step_size: float | None = option(
        None, help="The step size eta of the inner steps.", shown="the best known for the estimator", positive=True
    )
    inner_steps: int | None = option(None, help="The number k of inner steps.", shown="1", least=1)
    dtype: str = option("float32", help="The precision.", choices=("float32", "float64"))

    def __post_init__(self) -> None:
        """Raises `ValueError` for a field of the wrong type or out of its range."""
        kind: Any = type(self)
        for name, each in options(kind).items():
            object.__setattr__(self, name, each.convert(getattr(self, name)))


def check_known(wrong: str, name: str, known: Iterable[str]) -> None:
    """Raises `ValueError` for a name that is not known: what is wrong, and a hint."""
    if name not in (known := list(known)):
        raise ValueError(f"{wrong}; {nearest(name, known)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: the nearest known one, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
