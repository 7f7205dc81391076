"""Training what is not done yet: group by group, with checkpoints, and a clean stop on Ctrl-C."""

from __future__ import annotations

import contextlib
import functools
import io
import platform
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pullback.experiments.events import EventFiles
from pullback.experiments.groups import BusyError, Group, plan
from pullback.experiments.runs import write_atomically
from pullback.experiments.study import Study, Trainer


class Report:
    """What the runner tells while it works. This one keeps quiet; the command line's draws a progress display."""

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        """Called once with the label and the number of runs of each group that will be trained."""

    def begin(self, label: str, steps: int) -> None:
        """A group begins."""

    def at(self, step: int, latest: Sequence[dict[str, Any]]) -> None:
        """A group has reached a step; `latest` is the last evaluation of each run."""

    def end(self, message: str) -> None:
        """A group ends: done, failed, interrupted or busy."""


@dataclass
class Outcome:
    """What became of the runs that were asked for."""

    total: int
    skipped: int = 0
    trained: int = 0
    failed: list[str] = field(default_factory=list)
    busy: int = 0
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        return not (self.failed or self.busy or self.interrupted)


def train(
    study: Study,
    configs: Sequence[Any],
    root: Path,
    *,
    device: str = "cpu",
    report: Report | None = None,
    checkpoint_seconds: float = 20.0,
    tensorboard: bool = False,
) -> Outcome:
    """Train every config that has no result yet.

    Args:
        study: whose configs they are.
        configs: in any order; repeated ones count once.
        root: the folder of the runs.
        device: `cpu` or `cuda`.
        report: is told about progress.
        checkpoint_seconds: how much work a crash may cost.
        tensorboard: also write event files into the run directories.
    """
    report = report or Report()
    configs = list(dict.fromkeys(configs))
    groups = plan(study, configs, root)
    todo = sum(not run.done for group in groups for run in group.runs)
    outcome = Outcome(total=len(configs), skipped=len(configs) - todo)
    labels = [study.label([run.config for run in group.runs]) for group in groups]
    report.plan([(label, len(group.runs)) for label, group in zip(labels, groups, strict=True)])
    with _interruptible() as stopped:
        for label, group in zip(labels, groups, strict=True):
            if stopped():
                outcome.interrupted = True
                break
            try:
                with group.claim():
                    if group.done:  # by another process, since the plan was made
                        continue
                    before = sum(run.done for run in group.runs)
                    _train_group(study, group, label, device, report, stopped, checkpoint_seconds, tensorboard)
            except BusyError:
                outcome.busy += len(group.runs)
                report.end("another process trains it")
                continue
            except Exception as error:
                _fail(group, error)
                outcome.failed.append(f"{label}: {error}")
                report.end(f"failed: {error}")
                continue
            if group.done:
                outcome.trained += len(group.runs) - before
            else:
                outcome.interrupted = True
                break
    return outcome


def _train_group(
    study: Study,
    group: Group,
    label: str,
    device: str,
    report: Report,
    stopped: Callable[[], bool],
    checkpoint_seconds: float,
    tensorboard: bool,
) -> None:
    for run in group.runs:
        run.start()
    trainer = study.trainer([run.config for run in group.runs], device)
    seconds = 0.0
    if (checkpoint := group.load()) is not None:
        trainer.restore(checkpoint["trainer"])
        seconds = checkpoint["seconds"]
    report.begin(label, trainer.steps)
    events = EventFiles([run.path for run in group.runs], after=trainer.step) if tensorboard else None
    began = saved = time.perf_counter()

    def save() -> None:
        group.save({"trainer": trainer.state(), "seconds": seconds + time.perf_counter() - began})
        _write_metrics(group, trainer, events)

    while trainer.step < trainer.steps and not stopped():
        trainer.advance(min(trainer.steps, trainer.step + 100), stopped)
        report.at(trainer.step, trainer.latest())
        if time.perf_counter() - saved > checkpoint_seconds:
            save()
            saved = time.perf_counter()
    if trainer.step < trainer.steps:
        save()
        report.end(f"stopped at step {trainer.step}")
    else:
        _write_metrics(group, trainer, events)
        _publish(group, trainer, device, seconds + time.perf_counter() - began)
        group.remove()
        report.end("done")
    if events is not None:
        events.close()


def _write_metrics(group: Group, trainer: Trainer, events: EventFiles | None) -> None:
    history = trainer.history()
    for run, rows in zip(group.runs, history, strict=True):
        run.write_metrics(rows)
    if events is not None:
        events.write(history)


def _publish(group: Group, trainer: Trainer, device: str, seconds: float) -> None:
    import torch

    about = {"seconds_of_group": round(seconds, 3), "runs_in_group": len(group.runs), **_provenance(device)}
    for run, result, parameters in zip(group.runs, trainer.results(), trainer.parameters(), strict=True):
        if not run.done:
            buffer = io.BytesIO()
            torch.save({name: value.cpu() for name, value in parameters.items()}, buffer)
            write_atomically(run.path / "checkpoint.pt", buffer.getvalue())
            run.publish({**result, **about})


def _fail(group: Group, error: Exception) -> None:
    for run in group.runs:
        if not run.done:
            run.fail(f"{type(error).__name__}: {error}")


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


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C (or SIGTERM) into a flag, so that training stops between two steps; a second one kills."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag.is_set
        return

    def note(number: int, frame: Any) -> None:
        flag.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
