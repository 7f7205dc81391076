"""What there is in a folder of runs: every directory as a record, whatever is in it; conditions on them, an order, and CSV.

A directory that cannot be read is listed as unreadable, with the reason, and never raises.

    clusters=10    estimator!=linear    learning_rate<=0.001    test_accuracy>90

A field is one of the config or of the metrics, or `state`, `task`, `version`, `run` or `error`. Numbers compare as numbers; a
run without the field fails every condition on it but `!=`, and `none` is the value of a field that does not apply.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pullback_study.runs.files import is_locked, read_json, read_rows
from pullback_study.runs.run import Run
from pullback_study.tasks import Task, known_task, names_of_estimators
from pullback_study.tasks.schema import check_known, options

_FILES = ("config.json", "result.json")  # a run has one of them at least
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_CONDITION = re.compile(r"\s*([\w-]+)\s*(<=|>=|!=|=|<|>)=?\s*(.*?)\s*")
STATES = ("done", "running", "stopped", "failed", "unreadable")


@dataclass(frozen=True)
class Stored:
    """A run as found on disk."""

    path: Path
    task: str = "?"  # where that cannot be read
    version: int | None = None
    config: dict[str, Any] = field(default_factory=dict)  # fields that were added to the config since have their defaults
    state: str = "unreadable"  # one of `STATES`; running: by a process that lives; stopped: to be resumed
    result: dict[str, Any] = field(default_factory=dict)  # `result.json`; empty before the run is done
    metrics: dict[str, float] = field(default_factory=dict)  # its numbers; before that, those of the last evaluation
    error: str | None = None  # why it failed, or cannot be read
    older: bool = False  # made by an older version of its task: it is listed and never reused

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def seed(self) -> int | None:
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else None

    def curve(self) -> list[dict[str, float]]:
        """The numbers of the evaluations so far, in rows with a `step`; none if they cannot be read."""
        try:
            return [_numbers(row) for row in read_rows(self.path / "metrics.jsonl")]
        except (OSError, ValueError):
            return []


def list_runs(folder: Path) -> list[Stored]:
    """Every run directory under a folder, in the order of their names; none if the folder is not there."""
    try:
        paths = sorted(folder / name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(f"{folder} cannot be read ({error.strerror}); --runs needs a folder of runs") from None
    return [read_run(path) for path in paths if any(os.path.lexists(path / name) for name in _FILES)]


def read_run(path: Path) -> Stored:
    """The run in a directory."""
    about: dict[str, Any] = {}
    try:
        about = _about(read_json(path / "config.json"))
        if (path / "result.json").exists():
            result = read_json(path / "result.json")
            _check_result(about, result)
            return Stored(path, **about, state="done", result=result, metrics=_numbers(result))
        rows = read_rows(path / "metrics.jsonl")
        latest = _validation_names(about["task"], rows[-1]) if rows else {}
        running = is_locked(path / ".lock")
        if (path / "error.json").exists() and not running:
            text = str(read_json(path / "error.json").get("error"))
            return Stored(path, **about, state="failed", metrics=latest, error=text)
        return Stored(path, **about, state="running" if running else "stopped", metrics=latest)
    except (OSError, ValueError) as error:
        return Stored(path, **about, error=str(error))


def problem(run: Run) -> str | None:
    """Why the directory of a run cannot be used, in words; None if it can, or is not there yet."""
    found = next((read_run(run.path) for name in _FILES if os.path.lexists(run.path / name)), None)
    if found is None or found.state != "unreadable":
        return None
    return f"{run.path} cannot be read ({found.error}); make it readable, or delete it to train this run from the start"


def _about(content: dict[str, Any]) -> dict[str, Any]:
    """Task, version and config, from the content of `config.json`."""
    name, version, config = content.get("task"), content.get("version"), content.get("config")
    if "study" in content and isinstance(config, dict):  # before tasks had names of their own
        name, version = config.get("task", content["study"]), 0
    if not isinstance(name, str) or not isinstance(config, dict) or type(version) is not int:
        raise ValueError("config.json is not the config of a run")
    if not isinstance(config.get("estimator", ""), str):
        raise ValueError(f"config.json: estimator is {config['estimator']!r}, and no name")
    if (task := known_task(name)) is None:
        return {"task": name, "version": version, "config": config}
    if version == task.version:
        _check_config(task, config)
    added = {each.name: each.default for each in dataclasses.fields(task.config_type)}
    return {"task": name, "version": version, "config": {**added, **config}, "older": version < task.version}


def _check_config(task: Task, config: dict[str, Any]) -> None:
    """Raises `ValueError` for a field of another type, or out of its range."""
    for name, each in options(task.config_type).items():
        try:
            each.convert(config.get(name, each.default))
        except ValueError as error:
            raise ValueError(f"config.json: {error}") from None


def _check_result(about: dict[str, Any], result: dict[str, Any]) -> None:
    """Raises `ValueError` for a metric of the task that is no number; null is one of a run that diverged."""
    if (task := known_task(about["task"])) is None or about.get("older"):
        return
    for name in (metric.name for metric in task.metrics if metric.name in result):
        if result[name] is not None and type(result[name]) not in (int, float):
            raise ValueError(f"result.json: {name} is {str(result[name])[:40]!r}, and no number")
    if task.selected_by not in result:
        raise ValueError(f"result.json has no {task.selected_by}")


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers a float can hold."""
    return {name: value for name, value in values.items() if type(value) in (int, float) and abs(value) < 1e300}


def _validation_names(task: str, row: dict[str, Any]) -> dict[str, float]:
    """An evaluation under the names that the result will have."""
    found = known_task(task)
    names = {metric.curve: metric.name for metric in found.metrics if metric.curve} if found else {}
    return {names.get(name, name): value for name, value in _numbers(row).items()}


class Condition(NamedTuple):
    """A field, a comparison and a value."""

    field: str
    comparison: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a condition; write a field, one of = != < <= > >=, and a value")
        name, value = found[1].replace("-", "_"), found[3]
        if name == "estimator":  # its own name, for one of its aliases
            value = names_of_estimators().get(value, value)
        if found[2] in _ORDERS and _number(value) is None:
            raise ValueError(f"{text}: {value!r} is not a number")
        return cls("state" if name == "status" else name, found[2], value)

    def holds(self, about: dict[str, Any]) -> bool:
        mine, number = about.get(self.field), _number(self.value)
        if self.comparison in _ORDERS:
            return (value := _number(mine)) is not None and _ORDERS[self.comparison](value, number)
        same = str(mine).lower() == self.value.lower() or (number is not None and _number(mine) == number)
        return same == (self.comparison == "=")


def select(runs: Sequence[Stored], where: Sequence[str] = (), sort: str | None = None) -> list[Stored]:
    """The runs for which all conditions hold, in the order of a field (`-field`: the highest first).

    A field that no run has is a mistake. Runs without the field to sort by come last.
    """
    flat = [(run, _fields(run)) for run in runs]
    known = sorted({name for _, about in flat for name in about})
    order = (sort or "").lstrip("-").replace("-", "_")
    conditions = [Condition.parse(text) for text in where]
    for name in [condition.field for condition in conditions] + ([order] if sort else []):
        check_known(f"no run here has a field {name!r}", name, known or [name])
    if sort:
        flat.sort(key=lambda item: rank(item[1].get(order)), reverse=sort.startswith("-"))
        flat.sort(key=lambda item: item[1].get(order) is None)
    return [run for run, about in flat if all(condition.holds(about) for condition in conditions)]


def as_csv(runs: Sequence[Stored]) -> str:
    """One line for each run: what it is, then the fields of configs and metrics in their order; escapes for what no text is."""
    from pullback.viz import visible

    names = list(dict.fromkeys(["run", "state", "task", "version", *(n for run in runs for n in (*run.config, *run.metrics))]))
    names += ["error"] if any(run.error for run in runs) else []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([visible(name) for name in names])
    for about in map(_fields, runs):
        writer.writerow(["" if about.get(name) is None else visible(str(about[name])) for name in names])
    return out.getvalue()


def _fields(run: Stored) -> dict[str, Any]:
    """All there is to know about a run, flat: `error` only where it has one."""
    about = {"run": run.id, "state": run.state, "task": run.task, "version": run.version}
    return {**run.metrics, **run.config, **about, **({"error": run.error} if run.error else {})}


def rank(value: Any) -> tuple[bool, float, str]:
    """Numbers by their size, then texts."""
    number = _number(value)
    return number is None, number or 0.0, str(value)


def _number(value: Any) -> float | None:
    """What a number is, or a text says; None for anything else."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
