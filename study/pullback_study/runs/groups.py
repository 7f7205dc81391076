"""A group of runs that train together: the unit that is locked, checkpointed and resumed.

Until it is done it has a directory `<folder>/.work/<hash of the members>/` with `members.json`, the ids of its runs, and
`checkpoint.pt`, all that is needed to resume.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.runs.files import content_hash, remove_leftovers, write_atomically
from pullback_study.runs.lock import locked
from pullback_study.runs.run import Run

if TYPE_CHECKING:
    from pullback_study.tasks.task import Task

WORK = ".work"


@dataclass(frozen=True)
class Group:
    """Runs in the order in which they train together."""

    runs: tuple[Run, ...]

    @property
    def path(self) -> Path:
        return self.runs[0].folder / WORK / content_hash([run.id for run in self.runs])

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def done(self) -> bool:
        return all(run.done for run in self.runs)

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold every run of the group; raises `BusyError` if another process has one of them."""
        with locked(run.lock for run in self.runs):
            for folder in (self.path, *(run.path for run in self.runs)):
                remove_leftovers(folder)
            yield

    def save(self, state: dict[str, Any]) -> None:
        if not (self.path / "members.json").exists():
            write_atomically(self.path / "members.json", json.dumps([run.id for run in self.runs]))
        write_atomically(self.checkpoint, saved(state))

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint. It is data: what is not tensors and plain values is refused, and never executed."""
        import torch

        if not self.checkpoint.exists():
            return None
        try:
            state = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
            return {"trainer": state["trainer"], "seconds": float(state["seconds"]), "checksums": state.get("checksums")}
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self.checkpoint} is damaged, or holds more than tensors and plain values, and was not loaded; "
                f"delete it to train these runs from the start"
            ) from error

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
        remove_leftovers(path)
        (path / "members.json").unlink(missing_ok=True)
        path.rmdir()
