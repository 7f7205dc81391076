"""A run: a config in, a directory out.

    <folder>/<hash of the identity>/
        config.json      the task, its version and the whole config
        metrics.jsonl    the learning curve: one line for each evaluation
        result.json      the final numbers and where they come from; exists when, and only when, the run is done
        checkpoint.pt    the final parameters (tensors only: `torch.load(..., weights_only=True)`)
        error.json       why it failed, until it is tried again
        .lock            held by the process that trains it

The identity is the task, its version, and the fields of the config that differ from their defaults: an option that is added
later, with a default that changes nothing, leaves every run where it is. `result.json` is created once and never replaced.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.runs.files import as_json, content_hash, create_once, parse_json, read_json, write_atomically


@dataclass(frozen=True)
class Run:
    """One config of one version of a task, and its directory.

    Args:
        folder: the folder that holds all runs.
        task: the task's name.
        version: the task's version; it goes up when a fix changes results or a default changes, so that old results are
            never reused.
        config: a frozen dataclass of plain values, with a default for every field.
    """

    folder: Path
    task: str
    version: int
    config: Any

    @property
    def identity(self) -> dict[str, Any]:
        return {"task": self.task, "version": self.version, "config": differences(self.config)}

    @property
    def id(self) -> str:
        return content_hash(self.identity)

    @property
    def path(self) -> Path:
        return self.folder / self.id

    @property
    def lock(self) -> Path:
        return self.path / ".lock"

    @property
    def done(self) -> bool:
        return (self.path / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        return read_json(self.path / "result.json")

    @property
    def curve(self) -> list[dict[str, Any]]:
        """The evaluations so far, in order of their steps."""
        path = self.path / "metrics.jsonl"
        return [parse_json(line, path.name) for line in path.read_text().splitlines()] if path.exists() else []

    def start(self) -> None:
        """Create the directory with its config, and forget an earlier failure."""
        if not (self.path / "config.json").exists():
            whole = {"task": self.task, "version": self.version, "config": dataclasses.asdict(self.config)}
            write_atomically(self.path / "config.json", as_json(whole, indent=1))
        (self.path / "error.json").unlink(missing_ok=True)

    def write_curve(self, rows: Iterable[dict[str, Any]]) -> None:
        write_atomically(self.path / "metrics.jsonl", "".join(as_json(row) + "\n" for row in rows))

    def publish(self, result: dict[str, Any]) -> None:
        """Write the final numbers, once: from here on the run is done, and never trained again."""
        create_once(self.path / "result.json", as_json(result, indent=1))

    def fail(self, message: str, traceback: str = "") -> None:
        write_atomically(self.path / "error.json", as_json({"error": message, "traceback": traceback}))

    def problem(self) -> str | None:
        """Why this directory cannot be used, in words; None if it can, or is not there yet."""
        remedy = "make it readable, or delete it to train this run from the start"
        try:
            if not self.path.exists():
                return None
            if not self.path.is_dir() or not os.access(self.path, os.R_OK | os.X_OK):
                return f"{self.path} is not a folder that can be read; {remedy}"
            config = self.path / "config.json"
            if config.exists() and not self._is_mine(read_json(config)):
                return f"{config} is not the config of this run; {remedy}"
            if self.done:
                _ = self.result
        except (OSError, ValueError) as error:
            return f"{self.path} cannot be read ({error}); {remedy}"
        return None

    def _is_mine(self, stored: dict[str, Any]) -> bool:
        about, config = (stored.get("task"), stored.get("version")), stored.get("config")
        mine = parse_json(as_json(dataclasses.asdict(self.config)), "")
        if about != (self.task, self.version) or not isinstance(config, dict):
            return False
        defaults = {field.name: field.default for field in dataclasses.fields(self.config)}
        return parse_json(as_json({**defaults, **config}), "") == mine


def differences(config: Any) -> dict[str, Any]:
    """The fields of a config that differ from their defaults."""
    values = {field.name: (getattr(config, field.name), field.default) for field in dataclasses.fields(config)}
    return {name: value for name, (value, default) in values.items() if value != default}
