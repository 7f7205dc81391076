"""Training one group of runs: from its last checkpoint to its published results."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gc
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pullback_study.runs.files import BusyError, write_atomically
from pullback_study.runs.provenance import continued, provenance, versions
from pullback_study.runs.run import Group, Run, saved
from pullback_study.tasks.task import Task, Trainer

_NO_MEMORY = ("CUDA out of memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")  # of PyTorch, CUDA and its libraries
_TALK_SECONDS = 0.25
_EPOCH_SECONDS = 1.0  # a save takes some 20 ms, and an epoch perhaps 100


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

    def of(self, group: Group) -> Job:
        return dataclasses.replace(self, configs=tuple(run.config for run in group.runs))

    @property
    def group(self) -> Group:
        return Group(tuple(self.task.run(config, self.folder) for config in self.configs))


class Reached(NamedTuple):
    """A group is at this step of so many; `latest` is the last evaluation of each run."""

    step: int
    steps: int
    latest: list[dict[str, Any]] = []  # noqa: RUF012


class Ending(NamedTuple):
    """How the work on a group ended: `done`, `stopped`, `failed`, `full`, failed for lack of memory on the GPU, `busy`, because
    another process has it, or `died`: its worker is gone, and it resumes from its last checkpoint in another one.
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
                if group.left:
                    return _train(job, group, tell, stopped)
                group.remove()
                return Ending("done", "done by another process")
            except Exception as error:
                ending, details = failure(error, job.folder), traceback.format_exc()
                with contextlib.suppress(OSError):  # the disk that made it fail may be too full for this file as well
                    group.fail(ending.message, details)
                return ending
            finally:
                if job.device != "cpu":
                    gc.collect()  # optimisers of PyTorch are in cycles, which hold the memory of a trainer on a GPU
    except BusyError:
        return Ending("busy", "another process trains it") if group.left else Ending("done", "done by another process")
    except OSError as error:  # not even the lock could be had
        return failure(error, job.folder)


def failure(error: Exception, folder: Path) -> Ending:
    """The ending by an error, in words, with what to do where that is known."""
    message = str(error) if type(error) in (ValueError, ArithmeticError) else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"no space left on the disk of {folder}/; free some, and run the same command again"
    return Ending("full" if any(words in message for words in _NO_MEMORY) else "failed", message)


def _train(job: Job, group: Group, tell: Tell, stopped: Callable[[], bool]) -> Ending:
    for run in group.runs:
        run.start()
    tell(Reached(0, 0))
    files = {name: path for config in job.configs for name, path in job.task.sources(config).items()}
    trainer = job.task.trainer(list(job.configs), job.device)
    made_from, seconds, now = _checksums(files), 0.0, provenance(job.device)
    if (checkpoint := group.load()) is not None:
        about = f"{group.checkpoint}, the checkpoint of {group.runs[0].path},"
        if problem := _other_data(about, group.checkpoint, checkpoint.get("checksums"), files):
            raise ValueError(problem)
        try:
            trainer.restore(checkpoint["trainer"])
        except Exception as error:  # a name that is missing, tensors of another shape
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise ValueError(f"{about} does not fit these runs ({why}); delete it to train them from the start") from error
        seconds = checkpoint["seconds"]
    made_by = continued(checkpoint, now)
    seconds -= time.perf_counter()
    with contextlib.ExitStack() as closing:
        writers, shown = [], trainer.step
        if job.tensorboard:  # from the step where training resumes
            from torch.utils.tensorboard import SummaryWriter

            paths = [str(run.path) for run in group.runs]
            writers = [closing.enter_context(SummaryWriter(path, purge_step=shown + 1)) for path in paths]

        def write_curves() -> None:
            nonlocal shown
            history = trainer.history()
            for run, rows in zip(group.runs, history, strict=True):
                if not run.done:
                    run.write_curve(rows)
            for writer, rows in zip(writers, history, strict=False):
                for row in (row for row in rows if row["step"] > shown):
                    for name in row.keys() - {"step"}:
                        writer.add_scalar(name, row[name], row["step"])
                writer.flush()
            shown = max((rows[-1]["step"] for rows in history if rows), default=shown)

        def save() -> None:
            state = {"trainer": trainer.state(), "seconds": seconds + time.perf_counter()}
            group.save({**state, "checksums": made_from, "made_by": made_by})
            write_curves()

        _advance(job, trainer, save, tell, stopped)
        if trainer.step < trainer.steps:
            save()
            return Ending("stopped", f"stopped at step {trainer.step}")
        if len(group.runs) > 1:
            save()  # should it be killed between two results, the group resumes here, with the same members
        write_curves()
    trained = _publish(group, trainer, made_by, seconds + time.perf_counter())
    group.remove()
    several = f", by several versions of the code: {'; '.join(code)}" if len(code := versions(made_by)) > 1 else ""
    return Ending("done", f"done{several}", trained)


def _advance(job: Job, trainer: Trainer, save: Callable[[], None], tell: Tell, stopped: Callable[[], bool]) -> None:
    """Train, saving now and then, in portions of about a quarter of a second."""
    saved_at, saved_epochs, chunk = time.perf_counter(), trainer.epochs, 4
    tell(Reached(trainer.step, trainer.steps))
    while trainer.step < trainer.steps and not stopped():
        at = time.perf_counter()
        trainer.advance(min(trainer.steps, trainer.step + chunk), stopped)
        now = time.perf_counter()
        chunk = 2 * chunk if now - at < _TALK_SECONDS else max(1, chunk // 2)
        tell(Reached(trainer.step, trainer.steps, [rows[-1] for rows in trainer.history() if rows]))
        patience = _EPOCH_SECONDS * job.beside if trainer.epochs > saved_epochs else job.checkpoint_seconds
        if now - saved_at > min(patience, job.checkpoint_seconds) and trainer.step < trainer.steps:
            save()
            saved_at, saved_epochs = time.perf_counter(), trainer.epochs


def _publish(group: Group, trainer: Trainer, made_by: Sequence[dict[str, Any]], seconds: float) -> int:
    *earlier, last = made_by
    about = {"seconds_of_group": round(seconds, 3), "runs_in_group": len(group.runs), **last}
    about |= {"earlier": earlier} if earlier else {}
    published = 0
    for run, result, parameters in zip(group.runs, trainer.results(), trainer.parameters(), strict=True):
        if not run.done:
            write_atomically(run.path / "checkpoint.pt", saved({name: value.cpu() for name, value in parameters.items()}))
            with contextlib.suppress(FileExistsError):  # there is one result of a run, the first
                run.publish({**result, **about})
                published += 1
    return published


def changed_since(task: Task, run: Run) -> str | None:
    """Why the result of a run is not that of the data at hand; None if it is, is not there yet, or cannot be told.

    The hash of a run holds the names of its data alone; the checksums of the files stand in its result and in its checkpoints.
    """
    try:
        files = task.sources(run.config) if run.done else {}
    except ValueError:
        return None
    data = run.result.get("data") if files else None
    return _other_data(f"{run.path}", run.path, data.get("checksums") if isinstance(data, dict) else None, files)


def _other_data(about: str, place: Path, recorded: Any, files: dict[str, Path]) -> str | None:
    """How files differ from recorded checksums, and what to do; None if they do not, or if there is nothing to compare."""
    recorded = recorded if isinstance(recorded, dict) else {}
    there = {name: path for name, path in files.items() if name in recorded and path.exists()}
    for name, found in _checksums(there).items():
        if found != recorded[name]:
            return (
                f"{about} was made with other data: {files[name]} has changed since, its SHA-256 was {recorded[name]} and is "
                f"{found}; put that file back, use another folder of runs (--runs), or delete {place} to train from the start"
            )
    return None


def _checksums(files: dict[str, Path]) -> dict[str, str]:
    if not files:
        return {}
    from pullback_study.corpora.files import cache_folder, remembered_sha256

    return {name: remembered_sha256(path, cache_folder() / "checksums") for name, path in files.items()}
