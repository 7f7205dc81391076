"""Training what is not done yet: group by group, on any executor, with a clean stop on Ctrl-C."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_study.runs.executor import Executor, ThisProcess
from pullback_study.runs.groups import Group, plan
from pullback_study.runs.interrupt import interruptible
from pullback_study.runs.lock import BusyError
from pullback_study.runs.work import Died, Ending, Event, Job, Reached, changed_since

if TYPE_CHECKING:
    from pullback_study.tasks.task import Task

_DEATHS = 5
_RETRY_SECONDS = 0.5
_GRACE_SECONDS = 15.0


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
        """The label and the number of runs of each group that will be trained; again when there are more of them."""

    def at(self, group: int, event: Reached) -> None:
        """A group has begun, or reached a step."""

    def end(self, group: int, status: str, message: str) -> None:
        """A group ends: `done`, `failed`, `stopped`, or `busy`, left to another process."""

    def pause(self, group: int, message: str) -> None:
        """A group does not train for the moment: its worker has died, or another process has it."""


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
    with interruptible() as stopped:
        _Schedule(job, groups, executor or ThisProcess(), report or Report(), outcome, wait).work(stopped)
    return outcome


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise ValueError(f"the folder of runs {folder} cannot be made: {error.strerror}; choose another one (--runs)") from None
    if not writable:
        raise ValueError(f"the folder of runs {folder} cannot be written to; choose another one (--runs)")


class _Schedule:
    """Which group trains when: each once, again when its worker dies, later when another process has it."""

    def __init__(
        self, job: Job, groups: Sequence[Group], executor: Executor, report: Report, outcome: Outcome, wait: bool
    ) -> None:
        self._job, self._executor, self._report, self._outcome, self._wait = job, executor, report, outcome, wait
        self._groups: list[Group] = []
        self._queue: deque[int] = deque()
        self._running: set[int] = set()
        self._later: dict[int, float] = {}
        self._told: set[int] = set()
        self._deaths: Counter[int] = Counter()
        self._add(groups)

    def work(self, stopped: Callable[[], bool]) -> None:
        try:
            if self._groups:
                self._executor.open(self._tell, stopped, len(self._groups))
            while (self._queue or self._running or self._later) and not stopped():
                while self._queue and self._executor.free and not stopped():
                    group = self._queue.popleft()
                    self._running.add(group)
                    configs = tuple(run.config for run in self._groups[group].runs)
                    self._executor.start(group, dataclasses.replace(self._job, configs=configs))
                if self._running or self._later:
                    self._executor.wait(0.2)
                self._again()
            self._outcome.interrupted |= bool(self._queue or self._running or self._later)
            if self._running:
                self._executor.stop()
                deadline = time.monotonic() + _GRACE_SECONDS
                while self._running and time.monotonic() < deadline:
                    self._executor.wait(0.2)
        finally:
            self._executor.close()

    def _add(self, groups: Sequence[Group]) -> None:
        self._queue.extend(range(len(self._groups), len(self._groups) + len(groups)))
        self._groups.extend(groups)
        self._report.plan([(self._label(group), len(self._groups[group].runs)) for group in range(len(self._groups))])

    def _tell(self, group: int, event: Event) -> None:
        if isinstance(event, Reached):
            self._report.at(group, event)
            return
        self._running.discard(group)
        if isinstance(event, Died):
            self._bury(group, event)
        else:
            self._finish(group, event)

    def _finish(self, group: int, ending: Ending) -> None:
        self._outcome.trained += ending.trained
        if ending.status == "busy" and self._wait:
            if group not in self._told:
                self._told.add(group)
                self._report.pause(group, f"{ending.message}; waiting")
            self._later[group] = time.monotonic() + _RETRY_SECONDS
            return
        if ending.status == "busy":
            self._outcome.busy += sum(not run.done for run in self._groups[group].runs)
        elif ending.status == "failed":
            self._outcome.failed.append(f"{self._label(group)}: {ending.message}")
        elif ending.status == "stopped":
            self._outcome.interrupted = True
        self._report.end(group, ending.status, ending.message)

    def _bury(self, group: int, event: Died) -> None:
        self._deaths[group] += 1
        if self._deaths[group] < _DEATHS:
            self._report.pause(group, f"its worker died ({event.reason}); it resumes from its last checkpoint")
            self._queue.append(group)
            return
        message = f"its worker died {_DEATHS} times ({event.reason}); is there enough memory?"
        with contextlib.suppress(BusyError, OSError), self._groups[group].claimed():
            for run in self._groups[group].runs:
                if not run.done:
                    run.start()
                    run.fail(message)
        self._finish(group, Ending("failed", message))

    def _again(self) -> None:
        """Try again what another process had; without the runs that it has finished."""
        for group in [group for group, when in self._later.items() if when < time.monotonic()]:
            del self._later[group]
            members = self._groups[group].runs
            missing = [run for run in members if not run.done]
            if len(missing) == len(members):
                self._queue.append(group)
            else:
                self._report.end(group, "done", f"{len(members) - len(missing)} done by another process")
                self._add(plan(self._job.task, [run.config for run in members], members[0].folder))

    def _label(self, group: int) -> str:
        return self._job.task.label([run.config for run in self._groups[group].runs])
