"""A sweep file: a task, and for any field of its config the values to try.

    task = "synthetic"

    [fields]                                  # for all runs
    seed = [0, 1, 2, 3]
    steps = 2000

    [[grid]]                                  # any number of grids, or none
    estimator = ["spigot", "spigot-ce"]
    step_size = [0.1, 1.0]

    [[grid]]
    estimator = "marginals"

The runs are the union over the grids of the product of their lists; a field of a grid replaces that of `[fields]`. Whatever
is not named has the task's own value. Nothing starts until the whole file is known to be right.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pullback_study.runs.lines import Lines
from pullback_study.tasks import Task, find_task
from pullback_study.tasks.schema import alternatives, nearest, options

_KEYS = ("task", "fields", "grid")
_MANY = 100_000
_TOLD = 10


@dataclass(frozen=True)
class Sweep:
    """What a sweep file asks for: configs of a task, each once, in the order of the file."""

    task: Task
    configs: tuple[Any, ...]


def read(path: Path, data: Path | None = None) -> Sweep:
    """Read a sweep file; raises `ValueError` with every mistake in it, each with its line and field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the sweep file {path} cannot be read: {error}") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    reader = _Reader(path, content, Lines(text))
    found = reader.read(data)
    if reader.mistakes or found is None:
        told = sorted(set(reader.mistakes))
        more = [f"and {len(told) - _TOLD} more"] if len(told) > _TOLD else []
        raise ValueError("\n".join([*(f"{path}, line {line}: {what}" for line, what in told[:_TOLD]), *more]))
    return found


@dataclass
class _Reader:
    path: Path
    content: Mapping[str, Any]
    lines: Lines
    mistakes: list[tuple[int, str]] = field(default_factory=list)

    def read(self, data: Path | None) -> Sweep | None:
        for key in self.content.keys() - set(_KEYS):
            hint = nearest(key, _KEYS)
            self._wrong("", key, f"there is no key {key!r} at the top of a sweep file; {hint} Fields stand in [fields]")
        name = self.content.get("task")
        if not isinstance(name, str):
            self._wrong("", "task", f"task is {name!r}; name one, such as task = \"synthetic\"")
            return None
        try:
            task = find_task(name, data)
        except ValueError as error:
            self._wrong("", "task", str(error))
            return None
        shared = self._table(task, "fields", 0, self.content.get("fields", {}))
        grids = self.content.get("grid", [{}])
        if not isinstance(grids, list) or not grids or not all(isinstance(grid, dict) for grid in grids):
            self._wrong("grid", "", "grids are tables of fields: [[grid]]")
            return None
        tables = [self._table(task, "grid", part, grid) for part, grid in enumerate(grids)]
        if self.mistakes:
            return None
        configs: dict[Any, None] = {}
        for part, table in enumerate(tables):
            configs.update(dict.fromkeys(self._product(task, part, {**shared, **table}, own=set(table))))
        return Sweep(task, tuple(configs))

    def _table(self, task: Task, table: str, part: int, content: Any) -> dict[str, list[Any]]:
        """The values of each field of a table."""
        found: dict[str, list[Any]] = {}
        if not isinstance(content, dict):
            self._wrong("", table, f"{table} is {content!r}; it is a table of fields: [{table}]")
            return found
        known = {name: each for name, each in options(task.config_type).items() if not each.hidden}
        for name, value in content.items():
            if name not in known:
                self._wrong(table, name, f"a config of this task has no field {name!r}; {nearest(name, known)}", part)
                continue
            try:
                found[name] = alternatives(value, known[name])
            except ValueError as error:
                self._wrong(table, name, str(error), part)
        return found

    def _product(self, task: Task, part: int, table: dict[str, list[Any]], own: set[str]) -> list[Any]:
        """The configs of a grid."""
        place = "grid" if own else "fields"
        if "estimator" not in table:
            self._wrong(place, "", "the field 'estimator' is missing", part)
            return []
        count = 1
        for values in table.values():
            count *= len(values)
        if count > _MANY:
            self._wrong(place, "", f"these lists make {count} runs; more than {_MANY} are not for one file", part)
            return []
        configs = []
        for chosen in itertools.product(*table.values()):
            fields = dict(zip(table, chosen, strict=True))
            try:
                configs.append(task.configure(**fields))
            except ValueError as error:
                named = [name for name in table if str(error).startswith(f"{name} ")]
                key = named[0] if named else "estimator" if "estimator" in table else ""
                self._wrong("grid" if key in own else "fields", key, str(error), part if key in own else 0)
        return configs

    def _wrong(self, table: str, key: str, what: str, part: int = 0) -> None:
        self.mistakes.append((self.lines.of(table, key, part), what))
