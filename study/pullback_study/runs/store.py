"""What there is in a folder of runs: every directory as a record, whatever is in it.

A directory that cannot be read is listed as unreadable, with the reason, and never raises.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pullback_study.runs.files import read_json, read_rows
from pullback_study.runs.lock import is_locked
from pullback_study.tasks import TASKS, find_task

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

    def curve(self) -> list[dict[str, Any]]:
        """The evaluations so far: rows with a `step`; none if they cannot be read."""
        try:
            return read_rows(self.path / "metrics.jsonl")
        except (OSError, ValueError):
            return []


def list_runs(folder: Path) -> list[Stored]:
    """Every run directory under a folder, in the order of their names; none if the folder is not there."""
    try:
        paths = sorted(folder / name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise ValueError(f"{folder} is a file; --runs needs a folder of runs") from None
    except OSError as error:
        raise ValueError(f"the folder of runs {folder} cannot be read: {error.strerror}") from None
    return [read_run(path) for path in paths if _is_run(path)]


def read_run(path: Path) -> Stored:
    """The run in a directory."""
    about: dict[str, Any] = {}
    try:
        about = _about(read_json(path / "config.json"))
        if (path / "result.json").exists():
            result = read_json(path / "result.json")
            return Stored(path, **about, state="done", result=result, metrics=_numbers(result))
        rows = read_rows(path / "metrics.jsonl")
        latest = _validation_names(about["task"], rows[-1]) if rows else {}
        running = is_locked(path / ".lock")
        if (path / "error.json").exists() and not running:
            text = str(read_json(path / "error.json").get("error"))
            return Stored(path, **about, state="failed", metrics=latest, error=text)
        return Stored(path, **about, state="running" if running else "stopped", metrics=latest)
    except ValueError as error:
        return Stored(path, **about, error=str(error))
    except OSError as error:
        return Stored(path, **about, error=f"{Path(str(error.filename)).name}: {error.strerror}")


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


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers a float can hold."""
    found = {name: value for name, value in values.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    return {name: value for name, value in found.items() if abs(value) < 1e300}


def _validation_names(task: str, row: dict[str, Any]) -> dict[str, float]:
    """An evaluation under the names that the result will have."""
    names = {metric.curve: metric.name for metric in find_task(task).metrics if metric.curve} if task in TASKS else {}
    return {names.get(name, name): value for name, value in _numbers(row).items()}
