"""Training one group of runs: from its last checkpoint to its published results.

The hash of a run holds the names of its data alone; the checksums of the files stand in its result and in its checkpoints.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import gc
import platform
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.runs.files import write_atomically
from pullback_study.runs.groups import Group, saved
from pullback_study.runs.lock import BusyError
from pullback_study.runs.run import Run

if TYPE_CHECKING:
    from pullback_study.tasks.task import Task, Trainer

_TALK_SECONDS = 0.25
_EPOCH_SECONDS = 1.0  # a save takes some 20 ms, and an epoch perhaps 100
_Curves = Sequence[Sequence[dict[str, Any]]]


@dataclass(frozen=True)
class Job:
    """A group to train, and how: all that a worker on any machine needs."""

    task: Task
    configs: tuple[Any, ...]  # of the runs of the group, in its order
    folder: Path
    device: str = "cpu"
    checkpoint_seconds: float = 20.0  # how much work a crash may cost; epochs are saved too, at most one per second
    tensorboard: bool = False  # also write event files into the run directories
    beside: int = 1  # how many runs train side by side: each saves its epochs that much less often

    def of(self, configs: tuple[Any, ...]) -> Job:
        return dataclasses.replace(self, configs=configs)

    @property
    def group(self) -> Group:
        return Group(tuple(self.task.run(config, self.folder) for config in self.configs))


@dataclass(frozen=True)
class Reached:
    """A group is at this step of so many; `latest` is the last evaluation of each run."""

    step: int
    steps: int
    latest: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True)
class Ending:
    """How the work on a group ended: `done`, `stopped`, `failed`, `busy`, because another process has it, or `died`: its worker
    is gone, and it resumes from its last checkpoint in another one.
    """

    status: str
    message: str
    trained: int = 0


Tell = Callable[[Reached], None]


def train_group(job: Job, tell: Tell, stopped: Callable[[], bool]) -> Ending:
    """Lock a group, train it until it is done or `stopped()`, and publish; a failure is an ending too."""
    group = job.group
    try:
        with group.claimed():
            try:
                if group.done:
                    group.remove()
                    return Ending("done", "done by another process")
                return _train(job, group, tell, stopped)
            except Exception as error:
                message, details = explain(error, job.folder), traceback.format_exc()
                with contextlib.suppress(OSError):  # the disk that made it fail may be too full for this file as well
                    for run in group.runs:
                        if not run.done:
                            run.fail(message, details)
                return Ending("failed", message)
            finally:
                if job.device != "cpu":
                    gc.collect()  # optimisers of PyTorch are in cycles, which hold the memory of a trainer on a GPU
    except BusyError:
        return Ending("done", "done by another process") if group.done else Ending("busy", "another process trains it")
    except OSError as error:  # not even the lock could be had
        return Ending("failed", explain(error, job.folder))


def _train(job: Job, group: Group, tell: Tell, stopped: Callable[[], bool]) -> Ending:
    for run in group.runs:
        run.start()
    tell(Reached(0, 0))
    files = {name: path for config in job.configs for name, path in job.task.sources(config).items()}
    trainer = job.task.trainer(list(job.configs), job.device)
    made_from, seconds = checksums(files), 0.0
    if (checkpoint := group.load()) is not None:
        if difference := change(checkpoint["checksums"], files):
            raise ValueError(
                f"{group.checkpoint}, the checkpoint of {group.runs[0].path}, was made with other data: {difference}; put that "
                f"file back, use another folder of runs (--runs), or delete {group.checkpoint} to train from the start"
            )
        trainer.restore(checkpoint["trainer"])
        seconds = checkpoint["seconds"]
    began = time.perf_counter()
    with _events(job, group, trainer.step) as events:

        def write_curves() -> None:
            history = trainer.history()
            for run, rows in zip(group.runs, history, strict=True):
                if not run.done:
                    run.write_curve(rows)
            events(history)

        def save() -> None:
            spent = seconds + time.perf_counter() - began
            group.save({"trainer": trainer.state(), "seconds": spent, "checksums": made_from})
            write_curves()

        _advance(job, trainer, save, tell, stopped)
        if trainer.step < trainer.steps:
            save()
            return Ending("stopped", f"stopped at step {trainer.step}")
        if len(group.runs) > 1:
            save()  # should it be killed between two results, the group resumes here, with the same members
        write_curves()
    trained = _publish(group, trainer, job.device, seconds + time.perf_counter() - began)
    group.remove()
    return Ending("done", "done", trained)


def _advance(job: Job, trainer: Trainer, save: Callable[[], None], tell: Tell, stopped: Callable[[], bool]) -> None:
    """Train, saving now and then, in portions of about a quarter of a second."""
    saved_at, saved_epochs, chunk = time.perf_counter(), trainer.epochs, 4
    tell(Reached(trainer.step, trainer.steps))
    while trainer.step < trainer.steps and not stopped():
        at = time.perf_counter()
        trainer.advance(min(trainer.steps, trainer.step + chunk), stopped)
        now = time.perf_counter()
        chunk = 2 * chunk if now - at < _TALK_SECONDS else max(1, chunk // 2)
        latest = [rows[-1] for rows in trainer.history() if rows]
        tell(Reached(trainer.step, trainer.steps, latest))
        patience = _EPOCH_SECONDS * job.beside if trainer.epochs > saved_epochs else job.checkpoint_seconds
        if now - saved_at > min(patience, job.checkpoint_seconds) and trainer.step < trainer.steps:
            save()
            saved_at, saved_epochs = time.perf_counter(), trainer.epochs


def _publish(group: Group, trainer: Trainer, device: str, seconds: float) -> int:
    about = {"seconds_of_group": round(seconds, 3), "runs_in_group": len(group.runs), **_provenance(device)}
    published = 0
    for run, result, parameters in zip(group.runs, trainer.results(), trainer.parameters(), strict=True):
        if not run.done:
            write_atomically(run.path / "checkpoint.pt", saved({name: value.cpu() for name, value in parameters.items()}))
            with contextlib.suppress(FileExistsError):  # there is one result of a run, the first
                run.publish({**result, **about})
                published += 1
    return published


@contextlib.contextmanager
def _events(job: Job, group: Group, after: int) -> Iterator[Callable[[_Curves], None]]:
    """TensorBoard's event files beside the curves, if they are wanted; from the step where training resumes."""
    if not job.tensorboard:
        yield lambda history: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with contextlib.ExitStack() as writers:
        open_files = [writers.enter_context(SummaryWriter(str(run.path), purge_step=after + 1)) for run in group.runs]
        written = after

        def write(history: _Curves) -> None:
            nonlocal written
            for writer, rows in zip(open_files, history, strict=True):
                for row in (row for row in rows if row["step"] > written):
                    for name in row.keys() - {"step"}:
                        writer.add_scalar(name, row[name], row["step"])
                writer.flush()
            written = max((rows[-1]["step"] for rows in history if rows), default=written)

        yield write


def explain(error: Exception, folder: Path) -> str:
    """An error in words, with what to do where that is known."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk of {folder}/; free some, and run the same command again"
    return str(error) if type(error) in (ValueError, ArithmeticError) else f"{type(error).__name__}: {error}"


@functools.cache
def _provenance(device: str) -> dict[str, Any]:
    """Where numbers come from: enough to make them again."""
    import torch

    import pullback

    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        commit = None
    return {
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "pullback": pullback.__version__,
        "commit": commit,
    }


def checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """The SHA-256 of each file; of one that nothing has touched since, as this process remembers it."""
    stats = {name: path.stat() for name, path in files.items()}
    return {name: _checksum(files[name], (at.st_size, at.st_ino, at.st_mtime_ns, at.st_ctime_ns)) for name, at in stats.items()}


def change(recorded: Any, files: Mapping[str, Path]) -> str | None:
    """How files differ from recorded checksums, in words; None if they do not, or if there is nothing to compare."""
    with contextlib.suppress(OSError):
        if isinstance(recorded, dict):
            for name, found in checksums({name: path for name, path in files.items() if name in recorded}).items():
                if found != recorded[name]:
                    return f"{files[name]} has changed since: its SHA-256 was {recorded[name]} and is {found}"
    return None


def changed_since(task: Task, run: Run) -> str | None:
    """Why the result of a run is not that of the data at hand; None if it is, is not there yet, or cannot be told."""
    try:
        files = task.sources(run.config) if run.done else {}
    except ValueError:
        return None
    data = run.result.get("data") if files else None
    difference = change(data.get("checksums"), files) if isinstance(data, dict) else None
    return difference and (
        f"{run.path} is a result on other data: {difference}; put that file back, use another folder of runs (--runs), or "
        f"delete {run.path} to train this run again"
    )


@functools.lru_cache(maxsize=64)
def _checksum(path: Path, stamp: tuple[int, ...]) -> str:
    from pullback_study.corpora.files import remembered_sha256
    from pullback_study.corpora.layout import cache_folder

    return remembered_sha256(path, cache_folder() / "checksums")
