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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.runs.files import as_json, content_hash, create_once, read_json, read_rows, write_atomically


@dataclass(frozen=True)
class Run:
    """One config of one version of a task, and its directory in a folder of runs."""

    folder: Path
    task: str
    version: int
    config: Any  # a frozen dataclass of plain values, with a default for every field

    @property
    def identity(self) -> dict[str, Any]:
        values = {each.name: (getattr(self.config, each.name), each.default) for each in dataclasses.fields(self.config)}
        differing = {name: value for name, (value, default) in values.items() if value != default}
        return {"task": self.task, "version": self.version, "config": differing}

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
        return read_rows(self.path / "metrics.jsonl")

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
        wrong, config = "", self.path / "config.json"
        try:
            if self.path.exists() and not self.path.is_dir():
                wrong = f"{self.path} is not a folder"
            elif config.exists() and not self._is_mine(read_json(config)):
                wrong = f"{config} is not the config of this run"
            elif self.done:
                _ = self.result
        except (OSError, ValueError) as error:
            wrong = f"{self.path} cannot be read ({error})"
        return f"{wrong}; make it readable, or delete it to train this run from the start" if wrong else None

    def _is_mine(self, stored: dict[str, Any]) -> bool:
        defaults = {field.name: field.default for field in dataclasses.fields(self.config)}
        config = stored.get("config")
        whole = {**defaults, **config} if isinstance(config, dict) else None
        mine = self.task, self.version, dataclasses.asdict(self.config)
        return (stored.get("task"), stored.get("version"), whole) == mine
