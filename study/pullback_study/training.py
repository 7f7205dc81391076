"""Training one group of runs under its lease: from its last checkpoint to its published results."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import platform
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pullback_study.events import EventFiles
from pullback_study.groups import BusyError, Group
from pullback_study.leases import Lease, SupersededError, Terms, Watch
from pullback_study.sources import change, checksums
from pullback_study.study import Study, Trainer

_TALK_SECONDS = 0.25
_EPOCH_SECONDS = 1.0  # a save takes some 20 ms, and an epoch perhaps 100


@dataclass(frozen=True)
class Task:
    """A group to train, and how: all that a worker on any machine needs.

    Args:
        study: whose configs they are.
        configs: of the runs of the group, in its order.
        root: the folder of the runs.
        device: `cpu` or `cuda`.
        checkpoint_seconds: how much work a crash may cost; less where epochs end, each of which is saved too, at most one
            a second.
        tensorboard: also write event files into the run directories.
        terms: of the lease.
    """

    study: Study
    configs: tuple[Any, ...]
    root: Path
    device: str = "cpu"
    checkpoint_seconds: float = 20.0
    tensorboard: bool = False
    terms: Terms = field(default_factory=Terms)

    @property
    def group(self) -> Group:
        return Group(tuple(self.study.run(config, self.root) for config in self.configs))


@dataclass(frozen=True)
class Ending:
    """How the work on a group ended.

    Args:
        status: `done`, `stopped`, `failed`; `busy`: another process has it; `waiting`: it is not known yet
            whether the process that has it lives.
        message: for people.
        trained: how many results it published.
    """

    status: str
    message: str
    trained: int = 0


class Listener(Protocol):
    """Is told how far a group is."""

    def begin(self, step: int, steps: int) -> None: ...

    def at(self, step: int, latest: Sequence[dict[str, Any]]) -> None: ...


def train_group(task: Task, listener: Listener, stopped: Callable[[], bool], watch: Watch) -> Ending:
    """Claim a group, train it until it is done or `stopped()`, and publish; a failure is an ending too."""
    group = task.group
    try:
        with group.claim(watch) as lease:
            before = sum(run.done for run in group.runs)
            try:
                if before == len(group.runs):
                    group.remove()
                    return Ending("done", "done by another process")
                return _train(task, group, lease, listener, lambda: stopped() or lease.lost)
            except (SupersededError, BusyError):
                raise
            except Exception as error:
                message = explain(error, task.root)
                _fail(group, lease, message, traceback.format_exc())
                return Ending("failed", message)
    except BusyError as error:
        if group.done:
            return Ending("done", "done by another process")
        return Ending("busy" if error.certain else "waiting", "another process trains it")
    except SupersededError:
        return Ending("busy", "another process has taken it over")
    except OSError as error:  # not even the lease could be had
        return Ending("failed", explain(error, task.root))


def _train(task: Task, group: Group, lease: Lease, listener: Listener, stopped: Callable[[], bool]) -> Ending:
    for run in group.runs:
        run.start(lease)
    trainer = task.study.trainer([run.config for run in group.runs], task.device)
    files = {name: path for run in group.runs for name, path in task.study.sources(run.config).items()}
    made_from, seconds = checksums(files), 0.0
    if (checkpoint := group.load()) is not None:
        _check_sources(group, checkpoint["checksums"], files)
        trainer.restore(checkpoint["trainer"])
        seconds = checkpoint["seconds"]
    listener.begin(trainer.step, trainer.steps)
    events = EventFiles([run.path for run in group.runs], after=trainer.step) if task.tensorboard else None
    began = saved = time.perf_counter()
    saved_epochs = trainer.epochs

    def save() -> None:
        spent = seconds + time.perf_counter() - began
        group.save({"trainer": trainer.state(), "seconds": spent, "checksums": made_from}, lease)
        _write_metrics(group, trainer, events, lease)

    try:
        chunk = 4
        while trainer.step < trainer.steps and not stopped():
            at = time.perf_counter()
            trainer.advance(min(trainer.steps, trainer.step + chunk), stopped)
            now = time.perf_counter()
            chunk = min(100, 2 * chunk) if now - at < _TALK_SECONDS else max(1, chunk // 2)
            listener.at(trainer.step, trainer.latest())
            patience = _EPOCH_SECONDS if trainer.epochs > saved_epochs else task.checkpoint_seconds
            if now - saved > min(patience, task.checkpoint_seconds):
                save()
                saved, saved_epochs = time.perf_counter(), trainer.epochs
        if trainer.step < trainer.steps:
            save()
            return Ending("stopped", f"stopped at step {trainer.step}")
        _write_metrics(group, trainer, events, lease)
        trained = _publish(group, trainer, task.device, seconds + time.perf_counter() - began, lease)
        group.remove()
        return Ending("done", "done", trained)
    finally:
        if events is not None:
            events.close()


def _check_sources(group: Group, recorded: Any, files: Mapping[str, Path]) -> None:
    if difference := change(recorded, files):
        path = group.path / "checkpoint.pt"
        raise ValueError(
            f"{path}, the checkpoint of {group.runs[0].path}, was made with other data: {difference}; put that file back, "
            f"use another folder of runs (--runs), or delete {path} to train from the start"
        )


def _write_metrics(group: Group, trainer: Trainer, events: EventFiles | None, lease: Lease) -> None:
    history = trainer.history()
    for run, rows in zip(group.runs, history, strict=True):
        if not run.done:
            run.write_metrics(rows, lease)
    if events is not None:
        events.write(history)


def _publish(group: Group, trainer: Trainer, device: str, seconds: float, lease: Lease) -> int:
    import torch

    about = {"seconds_of_group": round(seconds, 3), "runs_in_group": len(group.runs), **_provenance(device)}
    published = 0
    for run, result, parameters in zip(group.runs, trainer.results(), trainer.parameters(), strict=True):
        if not run.done:
            buffer = io.BytesIO()
            torch.save({name: value.cpu() for name, value in parameters.items()}, buffer)
            lease.replace(run.path / "checkpoint.pt", buffer.getvalue())
            with contextlib.suppress(FileExistsError):  # there is one result of a run, the first
                run.publish({**result, **about}, lease)
                published += 1
    return published


def _fail(group: Group, lease: Lease, message: str, details: str) -> None:
    for run in group.runs:
        if not run.done:
            try:
                run.fail(message, lease, details)
            except (OSError, SupersededError):
                return  # the disk that made it fail may be too full for this file as well


def explain(error: Exception, root: Path) -> str:
    """An error in words, with what to do where that is known."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk of {root}/; free some, and run the same command again"
    return f"{type(error).__name__}: {error}"


@functools.cache
def _provenance(device: str) -> dict[str, Any]:
    """Where numbers come from: enough to make them again."""
    import torch

    import pullback

    return {
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "pullback": pullback.__version__,
        "commit": _commit(),
    }


def _commit() -> str | None:
    try:
        command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
