"""A sweep file: a task, and for any field of its config the values to try (docs/sweeps.md).

The runs are the union over the `[[grid]]` tables of the product of their lists; a field of a grid replaces that of `[fields]`.
Whatever is not named has the task's own value. Nothing starts until the whole file is known to be right.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pullback_study.tasks import Task, find_task
from pullback_study.tasks.schema import check_known, nearest, options

_KEYS = ("task", "fields", "grid")
_MANY, _LARGEST = 100_000, 1 << 20  # runs, and bytes


class Sweep(NamedTuple):
    """What a sweep file asks for: configs of a task, each once, in the order of the file."""

    task: Task
    configs: tuple[Any, ...]


def read(path: Path, data: Path | None = None) -> Sweep:
    """Read a sweep file; raises `ValueError` with the first mistake in it, its table and its field."""
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise ValueError(f"the sweep file {path} cannot be read: {error.strerror}") from None
    if len(text) > _LARGEST:
        raise ValueError(f"{path} is no sweep file: it has more than {_LARGEST >> 20} MiB")
    try:
        content = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:  # also of bytes that are no text, and of integers without end
        raise ValueError(f"{path} is not TOML: {error}") from None
    configs: dict[Any, None] = {}
    with _in(path):
        for key in content.keys() - set(_KEYS):
            wrong = f"there is no key {key!r} at the top of a sweep file ({nearest(key, _KEYS)})"
            raise ValueError(f"{wrong}; fields of the config belong under [fields]")
        if not isinstance(name := content.get("task"), str):
            raise ValueError(f'task is {name!r}; name one, such as task = "synthetic"')
        task, fields, grids = find_task(name, data), content.get("fields", {}), content.get("grid", [])
        if not isinstance(fields, dict) or not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
            raise ValueError("fields and grids are tables: [fields], [[grid]]")
        with _in("[fields]"):
            shared = _values(task, fields)
        for where, grid in {f"[[grid]] {i}": grid for i, grid in enumerate(grids, 1)}.items() or [("[fields]", {})]:
            with _in(where):
                configs |= dict.fromkeys(_product(task, shared | _values(task, grid)))
    return Sweep(task, tuple(configs))


@contextlib.contextmanager
def _in(place: object) -> Iterator[None]:
    """A mistake names its place."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _values(task: Task, table: dict[str, Any]) -> dict[str, list[Any]]:
    """The values of each field of a table, as values of its type; one value, or a list of them, in the file."""
    known, found = {name: each for name, each in options(task.config_type).items() if not each.hidden}, {}
    for name, given in table.items():
        check_known(f"a config of this task has no field {name!r}", name, known)
        found[name] = [known[name].convert(item) for item in (given if isinstance(given, list) else [given])]
        if not found[name]:
            raise ValueError(f"{name} has an empty list; give at least one value, or leave the field out")
        for i, item in enumerate(found[name]):
            if item in found[name][:i]:
                raise ValueError(f"{name} has {item!r} twice")
    return found


def _product(task: Task, table: dict[str, list[Any]]) -> list[Any]:
    """The configs of a grid."""
    if "estimator" not in table:
        raise ValueError("the field 'estimator' is missing")
    if (count := math.prod(map(len, table.values()))) > _MANY:
        raise ValueError(f"these lists make {count} runs; more than {_MANY} are not for one file")
    return [task.configure(**dict(zip(table, chosen, strict=True))) for chosen in itertools.product(*table.values())]
