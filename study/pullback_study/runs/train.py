"""Training what is not done yet: group by group, on any executor, with a clean stop on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.runs.executor import Executor, ThisProcess
from pullback_study.runs.groups import Group, plan
from pullback_study.runs.interrupt import interruptible
from pullback_study.runs.lock import BusyError
from pullback_study.runs.work import Ending, Job, Reached, changed_since

if TYPE_CHECKING:
    from pullback_study.tasks.task import Task

_DEATHS = 5
_RETRY_SECONDS = 0.5


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


class Report:
    """Is told while groups train, perhaps several at a time. This one keeps quiet; see `progress.py`."""

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        """The label and the number of runs of each group that will be trained now; again for those that are tried again."""

    def at(self, group: int, event: Reached) -> None:
        """A group has begun, or reached a step."""

    def end(self, group: int, status: str, message: str) -> None:
        """A group ends: `done`, `failed`, `stopped`, `busy`, left to another process, or `again`: it is tried again later."""


def train(
    task: Task,
    configs: Sequence[Any],
    folder: Path,
    *,
    executor: Executor | None = None,
    device: str = "cpu",
    report: Report | None = None,
    wait: bool = False,
    tensorboard: bool = False,
    checkpoint_seconds: float = 20.0,
) -> Outcome:
    """Train every config that has no result yet.

    Wrong options, missing data and a folder that cannot be written to raise `ValueError` before anything is written.

    Args:
        task: whose configs they are.
        configs: in any order; repeated ones count once.
        folder: of the runs.
        executor: where to train; in this process by default.
        device: `cpu` or `cuda`.
        report: is told about progress.
        wait: stay until runs that other processes train are done too, and take over those whose process dies.
        tensorboard: also write event files into the run directories.
        checkpoint_seconds: how much work a crash may cost; less where epochs end.
    """
    configs = list(dict.fromkeys(configs))
    problems = {}
    for config in configs:
        run = task.run(config, folder)
        problems[config] = run.problem() or changed_since(task, run)
    groups = plan(task, [config for config in configs if problems[config] is None], folder)
    todo = [run for group in groups for run in group.runs if not run.done]
    failed = [problem for problem in problems.values() if problem is not None]
    outcome = Outcome(total=len(configs), skipped=len(configs) - len(todo) - len(failed), failed=failed)
    for run in todo:
        task.sources(run.config)
    if todo:
        _check_writable(folder)
    job = Job(task, (), folder, device, checkpoint_seconds, tensorboard)
    _Training(job, executor or ThisProcess(), report or Report(), outcome, wait).work(groups)
    return outcome


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise ValueError(f"the folder of runs {folder} cannot be made: {error.strerror}; choose another one (--runs)") from None
    if not writable:
        raise ValueError(f"the folder of runs {folder} cannot be written to; choose another one (--runs)")


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
                jobs = [self.job.of(tuple(run.config for run in group.runs)) for group in groups]
                self.report.plan([(self._label(group), len(group.runs)) for group in groups])
                left = dict(enumerate(groups))
                again: list[Any] = []
                for number, ending in self.executor.run(jobs, self.report.at, stopped):
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
        return None

    def _finish(self, number: int, group: Group, ending: Ending) -> None:
        status, message = ending.status, ending.message
        if status == "died":
            status, message = "failed", f"its worker died {_DEATHS} times ({message}); is there enough memory?"
            with contextlib.suppress(BusyError, OSError), group.claimed():
                for run in group.runs:
                    if not run.done:
                        run.start()
                        run.fail(message)
        self.outcome.trained += ending.trained
        if status == "busy":
            self.outcome.busy += sum(not run.done for run in group.runs)
        elif status == "failed":
            self.outcome.failed.append(f"{self._label(group)}: {message}")
        self.outcome.interrupted |= status == "stopped"
        self.report.end(number, status, message)

    def _label(self, group: Group) -> str:
        return self.job.task.label([run.config for run in group.runs])
