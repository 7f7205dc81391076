"""A group of runs that train together: the unit that is claimed, checkpointed and resumed.

    <root>/groups/<hash of the members>/
        members.json     the hashes of its runs
        checkpoint.pt    all that is needed to go on, until the group is done
        lock             held by the process that trains it

The lock is the operating system's, so that it goes when its process does, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback.experiments.runs import Run, content_hash, write_atomically
from pullback.experiments.study import Study


class BusyError(Exception):
    """Another process trains this group now."""


@dataclass(frozen=True)
class Group:
    """Runs in the order in which they train together."""

    runs: tuple[Run, ...]

    @property
    def hash(self) -> str:
        return content_hash([run.hash for run in self.runs])

    @property
    def path(self) -> Path:
        return self.runs[0].root / "groups" / self.hash

    @property
    def done(self) -> bool:
        return all(run.done for run in self.runs)

    @contextlib.contextmanager
    def claim(self) -> Iterator[None]:
        """Hold the group for this process; raises `BusyError` if another one does."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(self.hash) from None
            write_atomically(self.path / "members.json", json.dumps([run.hash for run in self.runs]))
            yield

    def save(self, state: dict[str, Any]) -> None:
        import torch

        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomically(self.path / "checkpoint.pt", buffer.getvalue())

    def load(self) -> dict[str, Any] | None:
        import torch

        path = self.path / "checkpoint.pt"
        return torch.load(path, map_location="cpu", weights_only=True) if path.exists() else None

    def remove(self) -> None:
        """Forget the group's own files, once its runs are done."""
        shutil.rmtree(self.path, ignore_errors=True)


def plan(study: Study, configs: Sequence[Any], root: Path) -> list[Group]:
    """The groups to train so that all these configs are done; what is done is left out.

    A group that was interrupted goes on with the members it had, so that it ends with the numbers it would have had.
    """
    wanted = {run.hash: run for run in (study.run(config, root) for config in configs)}
    pending = {name: run for name, run in wanted.items() if not run.done}
    groups = []
    for members in unfinished(root).values():
        if members <= wanted.keys() and not members.isdisjoint(pending):
            for part in study.partition([wanted[name].config for name in sorted(members)]):
                groups.append(Group(tuple(study.run(config, root) for config in part)))
            pending = {name: run for name, run in pending.items() if name not in members}
    for part in study.partition([run.config for run in pending.values()]):
        groups.append(Group(tuple(study.run(config, root) for config in part)))
    return groups


def unfinished(root: Path) -> dict[Path, set[str]]:
    """The group directories under `root` and the hashes of their members."""
    found = {}
    for path in sorted((root / "groups").glob("*/members.json")):
        with contextlib.suppress(OSError, ValueError):
            found[path.parent] = set(json.loads(path.read_text()))
    return found


def is_claimed(path: Path) -> bool:
    """Whether a process holds the group in this directory."""
    try:
        with open(path / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
