"""What there is in a folder of runs: every directory as a record, whatever is in it.

A directory that cannot be read is listed as unreadable, with the reason, and never raises.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pullback_study.runs.files import parse_json, read_json, read_text
from pullback_study.runs.lock import is_locked
from pullback_study.tasks import TASKS, find_task

STATES = ("done", "running", "stopped", "failed", "unreadable")


@dataclass(frozen=True)
class Stored:
    """A run as found on disk.

    Args:
        path: its directory.
        task: its task's name; `?` where that cannot be read.
        version: of the task.
        config: plain values; fields that were added to the config since have their defaults.
        state: done; running, by a process that lives; stopped, to be resumed; failed, with an error; unreadable.
        result: the content of `result.json`; empty before the run is done.
        metrics: the numbers of the result; of a run that is not done, those of its last evaluation.
        error: why it failed, or cannot be read.
        older: made by an older version of its task: it is listed and never reused.
    """

    path: Path
    task: str = "?"
    version: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    state: str = "unreadable"
    result: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    older: bool = False

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def seed(self) -> int | None:
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else None

    def curve(self) -> list[dict[str, Any]]:
        """The evaluations so far: rows with a `step`; none if they cannot be read."""
        try:
            return _rows(self.path)
        except (OSError, ValueError):
            return []


def list_runs(folder: Path) -> list[Stored]:
    """Every run directory under a folder, in the order of their names; none if the folder is not there."""
    try:
        with os.scandir(folder) as listing:
            paths = sorted(Path(item.path) for item in listing if not item.name.startswith(".") and _is_run(Path(item.path)))
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise ValueError(f"{folder} is a file; --runs needs a folder of runs") from None
    except OSError as error:
        raise ValueError(f"the folder of runs {folder} cannot be read: {error.strerror}") from None
    return [read_run(path) for path in paths]


def read_run(path: Path) -> Stored:
    """The run in a directory."""
    try:
        about = _about(read_json(path / "config.json"))
    except (OSError, ValueError) as error:
        return Stored(path, error=_reason(error))
    try:
        if (path / "result.json").exists():
            result = read_json(path / "result.json")
            return Stored(path, **about, state="done", result=result, metrics=numbers(result))
        rows = _rows(path)
        latest = _validation_names(about["task"], rows[-1]) if rows else {}
        running = is_locked(path / ".lock")
        if (path / "error.json").exists() and not running:
            text = str(read_json(path / "error.json").get("error"))
            return Stored(path, **about, state="failed", metrics=latest, error=text)
        return Stored(path, **about, state="running" if running else "stopped", metrics=latest)
    except (OSError, ValueError) as error:
        return Stored(path, **about, error=_reason(error))


def numbers(values: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers a float can hold."""
    found = {}
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            found[name] = value
    return found


def _is_run(path: Path) -> bool:
    try:
        return path.is_dir() and any(os.path.lexists(path / name) for name in ("config.json", "result.json"))
    except OSError:
        return True  # it cannot be looked into: a run, for all we know


def _about(content: dict[str, Any]) -> dict[str, Any]:
    """Task, version and config, from the content of `config.json`."""
    name, version, config = content.get("task"), content.get("version"), content.get("config")
    if "study" in content and isinstance(config, dict):  # before tasks had names of their own
        name, version = config.get("task", content["study"]), 0
    if not isinstance(name, str) or not isinstance(config, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise ValueError("config.json is not the config of a run")
    if name not in TASKS:
        return {"task": name, "version": version, "config": config}
    task = find_task(name)
    added = {each.name: each.default for each in dataclasses.fields(task.config_type)}
    return {"task": name, "version": version, "config": {**added, **config}, "older": version < task.version}


def _rows(path: Path) -> list[dict[str, Any]]:
    if not (path / "metrics.jsonl").exists():
        return []
    return [parse_json(line, "metrics.jsonl") for line in read_text(path / "metrics.jsonl").splitlines()]


def _validation_names(task: str, row: dict[str, Any]) -> dict[str, float]:
    """An evaluation under the names that the result will have."""
    names = {metric.curve: metric.name for metric in find_task(task).metrics if metric.curve} if task in TASKS else {}
    return {names.get(name, name): value for name, value in numbers(row).items()}


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{Path(str(error.filename)).name}: {error.strerror}"
    return str(error)
