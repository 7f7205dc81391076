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

Runs that train together are a group: the unit that is locked, checkpointed and resumed. Until it is done it has a directory
`<folder>/.work/<hash of the members>/` with `members.json`, the ids of its runs, and `checkpoint.pt`, all that is needed to
resume.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.runs import files
from pullback_study.tasks.task import Task

WORK = ".work"


@dataclass(frozen=True)
class Run:
    """One config of one version of a task, and its directory in a folder of runs."""

    folder: Path
    task: str
    version: int
    config: Any  # a frozen dataclass of plain values, with a default for every field

    @property
    def identity(self) -> dict[str, Any]:
        usual = {each.name: each.default for each in dataclasses.fields(self.config)}
        differing = {name: value for name, value in vars(self.config).items() if value != usual[name]}
        return {"task": self.task, "version": self.version, "config": differing}

    @property
    def id(self) -> str:
        return files.content_hash(self.identity)

    @property
    def path(self) -> Path:
        return self.folder / self.id

    @property
    def done(self) -> bool:
        return (self.path / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        return files.read_json(self.path / "result.json")

    def start(self) -> None:
        """Create the directory with its config, and forget an earlier failure."""
        if not (self.path / "config.json").exists():
            whole = {"task": self.task, "version": self.version, "config": dataclasses.asdict(self.config)}
            files.write_atomically(self.path / "config.json", files.as_json(whole, indent=1))
        (self.path / "error.json").unlink(missing_ok=True)

    def write_curve(self, rows: Iterable[dict[str, Any]]) -> None:
        files.write_atomically(self.path / "metrics.jsonl", "".join(files.as_json(row) + "\n" for row in rows))

    def publish(self, result: dict[str, Any]) -> None:
        """Write the final numbers, once: from here on the run is done, and never trained again."""
        files.create_once(self.path / "result.json", files.as_json(result, indent=1))

    def fail(self, message: str, traceback: str = "") -> None:
        files.write_atomically(self.path / "error.json", files.as_json({"error": message, "traceback": traceback}))


@dataclass(frozen=True)
class Group:
    """Runs in the order in which they train together."""

    runs: tuple[Run, ...]

    @property
    def path(self) -> Path:
        return self.runs[0].folder / WORK / files.content_hash([run.id for run in self.runs])

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def left(self) -> list[Run]:
        """The runs that are not done."""
        return [run for run in self.runs if not run.done]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold every run of the group; raises `BusyError` if another process has one of them."""
        with files.locked(run.path / ".lock" for run in self.runs):
            for folder in (self.path, *(run.path for run in self.runs)):
                files.remove_leftovers(folder)
            yield

    def save(self, state: dict[str, Any]) -> None:
        if not (self.path / "members.json").exists():
            files.write_atomically(self.path / "members.json", json.dumps([run.id for run in self.runs]))
        files.write_atomically(self.checkpoint, saved(state))

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint. It is data: what is not tensors and plain values is refused, and never executed."""
        import torch

        if not self.checkpoint.exists():
            return None
        try:
            state = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
            return {**state, "trainer": state["trainer"], "seconds": float(state["seconds"])}
        except Exception as error:
            raise ValueError(
                f"{self.checkpoint} is damaged, or holds more than tensors and plain values, and was not loaded; "
                f"delete it to train these runs from the start"
            ) from error

    def fail(self, message: str, traceback: str = "") -> None:
        for run in self.left:
            run.start()
            run.fail(message, traceback)

    def remove(self) -> None:
        _remove(self.path)


def plan(task: Task, configs: Sequence[Any], folder: Path) -> list[Group]:
    """The groups to train so that all these configs are done; what is done is left out.

    A group that was interrupted resumes with the members it had, so that it ends with the numbers it would have had.
    """
    wanted = {run.id: run for run in (task.run(config, folder) for config in configs)}
    pending = {name: run for name, run in wanted.items() if not run.done}
    parts: list[Sequence[Any]] = []
    for path in sorted((folder / WORK).glob("*/members.json")):
        members: set[str] = set()
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
            members = set(json.loads(path.read_text()))
        if members and members <= wanted.keys() - pending.keys():
            _remove(path.parent)  # its process was killed after the last result
        elif members <= wanted.keys() and not members.isdisjoint(pending):
            parts += task.partition([wanted[name].config for name in sorted(members)])
            pending = {name: run for name, run in pending.items() if name not in members}
    parts += task.partition([run.config for run in pending.values()])
    return [Group(tuple(task.run(config, folder) for config in part)) for part in parts]


def saved(state: Any) -> bytes:
    """Tensors and plain values as the content of a file."""
    import torch

    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def _remove(path: Path) -> None:
    """Forget a checkpoint; in an order that leaves none without its members."""
    with contextlib.suppress(OSError):
        (path / "checkpoint.pt").unlink(missing_ok=True)
        files.remove_leftovers(path)
        (path / "members.json").unlink(missing_ok=True)
        path.rmdir()
