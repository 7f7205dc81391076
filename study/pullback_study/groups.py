"""A group of runs that train together: the unit that is claimed, checkpointed and resumed.

    <root>/groups/<hash of the members>/
        members.json     the hashes of its runs
        checkpoint.pt    all that is needed to go on, until the group is done
        held.* or free.* the lease of the process that trains it (`leases.py`)

The folder goes when all runs of the group are done.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study import leases
from pullback_study.leases import BusyError, Lease, State, Watch
from pullback_study.runs import Run, content_hash
from pullback_study.study import Study

__all__ = ["BusyError", "Group", "is_claimed", "plan", "unfinished"]

_REMOVED = ".removed-"
_OLD_SECONDS = 3600.0


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
    def claim(self, watch: Watch | None = None) -> Iterator[Lease]:
        """Hold the group for this process; raises `BusyError` if another one trains it, or a group that shares a run.

        The claim is visible before other groups are looked at, so that of two that overlap at least one gives way. Where
        the process of an overlapping group is dead, its lease is taken as well: should it wake up, it is refused.
        """
        watch = watch or Watch()
        members = {run.hash for run in self.runs}
        leases.prepare(self.path, {"members.json": json.dumps([run.hash for run in self.runs])})
        lease = leases.claim(self.path, watch)
        try:
            try:
                self._exclude_others(members, watch)
            except BusyError:
                if not (self.path / "checkpoint.pt").exists():
                    _remove(self.path)  # claimed in vain: its runs may go into other groups
                raise
            yield lease
        finally:
            lease.release()

    def _exclude_others(self, members: set[str], watch: Watch) -> None:
        for path, others in unfinished(self.runs[0].root).items():
            if path != self.path and not members.isdisjoint(others):
                held = leases.current(path)
                if held is not None and watch.state(held) is not State.FREE:
                    leases.claim(path, watch).release()

    def save(self, state: dict[str, Any], lease: Lease) -> None:
        import torch

        buffer = io.BytesIO()
        torch.save(state, buffer)
        lease.replace(self.path / "checkpoint.pt", buffer.getvalue())

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint. It is data: what is not tensors and plain values is refused, and never executed."""
        import torch

        path = self.path / "checkpoint.pt"
        if not path.exists():
            return None
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
            return {"trainer": state["trainer"], "seconds": float(state["seconds"]), "checksums": state.get("checksums")}
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} is damaged, or holds more than tensors and plain values, and was not loaded; "
                f"delete it to train these runs from the start"
            ) from error

    def remove(self) -> None:
        """Forget the group's own files, once its runs are done."""
        if self.done:
            _remove(self.path)


def plan(study: Study, configs: Sequence[Any], root: Path) -> list[Group]:
    """The groups to train so that all these configs are done; what is done is left out.

    A group that was interrupted goes on with the members it had, so that it ends with the numbers it would have had.
    """
    _sweep_up(root / "groups")
    wanted = {run.hash: run for run in (study.run(config, root) for config in configs)}
    pending = {name: run for name, run in wanted.items() if not run.done}
    groups = []
    for path, members in unfinished(root).items():
        if members <= wanted.keys() - pending.keys():
            _remove(path)  # its process was killed after the last result
        elif members <= wanted.keys() and not members.isdisjoint(pending):
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
        if not path.parent.name.startswith("."):
            with contextlib.suppress(OSError, ValueError, TypeError):
                found[path.parent] = set(json.loads(path.read_text()))
    return found


def _remove(path: Path) -> None:
    """All at once for other processes, then file by file."""
    removed = path.with_name(_REMOVED + secrets.token_hex(8))
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, removed)
    shutil.rmtree(removed, ignore_errors=True)


def _sweep_up(folder: Path) -> None:
    """What processes left that were killed while they made a group's folder, or removed it."""
    for leftover in [*folder.glob(f"{_REMOVED}*"), *folder.glob(f"{leases.STAGED}*")]:
        with contextlib.suppress(OSError):
            if leftover.name.startswith(_REMOVED) or time.time() - leftover.stat().st_mtime > _OLD_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)


def is_claimed(path: Path) -> bool:
    """Whether a process seems to train the group in this directory."""
    return leases.seems_held(path)
