"""Training what is not done yet: group by group, on any executor, with a clean stop on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from pullback_study.runs.executor import Executor
from pullback_study.runs.files import BusyError
from pullback_study.runs.progress import Report
from pullback_study.runs.run import Group, plan
from pullback_study.runs.store import problem
from pullback_study.runs.work import Ending, Job, changed_since
from pullback_study.tasks.task import Task

_DEATHS = 5
_RETRY_SECONDS = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


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
    task: Task,
    configs: Sequence[Any],
    folder: Path,
    *,
    executor: Executor | None = None,
    report: Report | None = None,
    wait: bool = False,
    **how: Any,
) -> Outcome:
    """Train every config that has no result yet, in this process by default; repeated ones count once.

    Wrong options, missing data and a folder that cannot be written to raise `ValueError` before anything is written. With
    `wait` it stays until runs that other processes train are done too, and takes over those whose process dies; `how` is
    `device`, `tensorboard` and `checkpoint_seconds` of each `Job`.
    """
    runs = [task.run(config, folder) for config in dict.fromkeys(configs)]
    problems = {run.id: problem(run) or changed_since(task, run) for run in runs}
    groups = plan(task, [run.config for run in runs if problems[run.id] is None], folder)
    todo = [run for group in groups for run in group.left]
    failed = [each for each in problems.values() if each is not None]
    outcome = Outcome(total=len(runs), skipped=len(runs) - len(todo) - len(failed), failed=failed)
    for run in todo:
        task.sources(run.config)
    if todo:
        _check_writable(folder)
    where, told = executor or Executor(), report or Report(Console(quiet=True))
    _Training(Job(task, (), folder, **how), where, told, outcome, wait).work(groups)
    return outcome


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wrong = "" if os.access(folder, os.W_OK | os.X_OK) else "cannot be written to"
    except OSError as error:
        wrong = f"cannot be made: {error.strerror}"
    if wrong:
        raise ValueError(f"the folder of runs {folder} {wrong}; choose another one (--runs)")


@dataclass
class _Training:
    """Rounds over groups: in each the executor trains those that are left; a worker that died, or a run that another process
    has, is tried again in the next one.
    """

    job: Job
    executor: Executor
    report: Report
    outcome: Outcome
    wait: bool
    deaths: Counter[Path] = field(default_factory=Counter)
    waiting: set[Path] = field(default_factory=set)

    def work(self, groups: Sequence[Group]) -> None:
        with interruptible() as stopped, contextlib.closing(self.executor):
            while groups and not stopped():
                self.report.plan([(self._label(group), len(group.runs)) for group in groups])
                left = dict(enumerate(groups))
                again: list[Any] = []
                for number, ending in self.executor.run([self.job.of(group) for group in groups], self.report.at, stopped):
                    group = left.pop(number)
                    if (message := self._retry(group, ending)) is None:
                        self._finish(number, group, ending)
                    else:
                        again += [run.config for run in group.runs]
                        if message:
                            self.report.end(number, "again", message)
                self.outcome.interrupted |= bool(left) or (stopped() and bool(again))
                if again and not stopped():
                    time.sleep(_RETRY_SECONDS if self.waiting else 0.0)
                groups = plan(self.job.task, again, self.job.folder)

    def _retry(self, group: Group, ending: Ending) -> str | None:
        """What to say of a group that is tried again, perhaps nothing; None if it is not."""
        if ending.status == "busy" and self.wait:
            said = group.path in self.waiting
            self.waiting.add(group.path)
            return "" if said else f"{ending.message}; waiting"
        if ending.status == "died" and self.deaths[group.path] < _DEATHS - 1:
            self.deaths[group.path] += 1
            return f"its worker died ({ending.message}); it resumes from its last checkpoint"
        if ending.status == "full" and (fewer := self.executor.shrink()):
            return f"the memory of the GPU is full; it resumes later, with at most {fewer} at a time (--streams {fewer})"
        return None

    def _finish(self, number: int, group: Group, ending: Ending) -> None:
        status, message, trained = ending
        if status == "died":
            status, message = "failed", f"its worker died {_DEATHS} times ({message}); is there enough memory?"
            with contextlib.suppress(BusyError, OSError), group.claimed():
                group.fail(message)
        status = "failed" if status == "full" else status
        self.outcome.trained += trained
        if status == "busy":
            self.outcome.busy += len(group.left)
        elif status == "failed":
            self.outcome.failed.append(f"{self._label(group)}: {message}")
        self.outcome.interrupted |= status == "stopped"
        self.report.end(number, status, message)

    def _label(self, group: Group) -> str:
        return self.job.task.label([run.config for run in group.runs])


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C (or SIGTERM) into a flag; a second one ends the process.

    Python runs signal handlers between two instructions, which a compiler may keep waiting for a long time. The
    interpreter's wakeup descriptor is written to at once, and a thread reads it.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag.is_set
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    listener = threading.Thread(target=_listen, args=(reader, flag), daemon=True)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    listener.start()
    try:
        yield flag.is_set
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)
        listener.join()
        os.close(reader)


def _listen(reader: int, flag: threading.Event) -> None:
    while signals := os.read(reader, 1):
        if signals[0] in _SIGNALS and flag.is_set():
            os.write(2, _SHOW_CURSOR if sys.stderr.isatty() else b"")
            os._exit(128 + signals[0])
        if signals[0] in _SIGNALS:
            flag.set()
            os.write(2, b"\nStopping: saving checkpoints. Press Ctrl-C again to quit at once.\n")
