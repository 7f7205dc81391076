"""Training what is not done yet: group by group, in one process or many, with a clean stop on Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pullback_study.groups import BusyError, Group, plan
from pullback_study.leases import Terms
from pullback_study.outcome import Outcome, Report
from pullback_study.sources import changed_since
from pullback_study.study import Study
from pullback_study.training import Ending, Task
from pullback_study.workers import Began, Died, Event, Reached, ThisProcess, Workers

_DEATHS = 3
_RETRY_SECONDS = 1.0
_GRACE_SECONDS = 15.0


def train(
    study: Study,
    configs: Sequence[Any],
    root: Path,
    *,
    device: str = "cpu",
    report: Report | None = None,
    checkpoint_seconds: float = 20.0,
    tensorboard: bool = False,
    workers: Workers | None = None,
    wait: bool = False,
    terms: Terms | None = None,
) -> Outcome:
    """Train every config that has no result yet.

    Args:
        study: whose configs they are.
        configs: in any order; repeated ones count once.
        root: the folder of the runs.
        device: `cpu` or `cuda`.
        report: is told about progress.
        checkpoint_seconds: how much work a crash may cost; less where epochs end, each of which is saved too, at most one
            a second.
        tensorboard: also write event files into the run directories.
        workers: where to train; this process by default.
        wait: stay until runs that other processes train are done too, and take over those whose process dies.
        terms: of the leases.
    """
    configs = list(dict.fromkeys(configs))
    runs = {config: study.run(config, root) for config in configs}
    problems = {config: run.problem() or changed_since(study, run) for config, run in runs.items()}
    groups = plan(study, [config for config in configs if problems[config] is None], root)
    todo = {run for group in groups for run in group.runs if not run.done}
    failed = [problem for problem in problems.values() if problem is not None]
    outcome = Outcome(total=len(configs), skipped=len(configs) - len(todo) - len(failed), failed=failed)

    def task(group: Group) -> Task:
        configs = tuple(run.config for run in group.runs)
        return Task(study, configs, root, device, checkpoint_seconds, tensorboard, terms or Terms())

    with _interruptible() as stopped:
        _Schedule(study, groups, task, workers or ThisProcess(), report or Report(), outcome, wait).work(stopped)
    return outcome


class _Schedule:
    """Which group trains when: each once, again when its worker dies, later when another process has it."""

    def __init__(
        self,
        study: Study,
        groups: Sequence[Group],
        task: Callable[[Group], Task],
        workers: Workers,
        report: Report,
        outcome: Outcome,
        wait: bool,
    ) -> None:
        self._study, self._task, self._workers, self._report = study, task, workers, report
        self._outcome, self._wait = outcome, wait
        self._groups: list[Group] = []
        self._queue: deque[int] = deque()
        self._running: set[int] = set()
        self._later: dict[int, float] = {}
        self._told: set[int] = set()
        self._deaths: Counter[int] = Counter()
        self._add(groups)

    def work(self, stopped: Callable[[], bool]) -> None:
        if not self._groups:
            return
        self._workers.open(self._tell, stopped, len(self._groups))
        try:
            while (self._queue or self._running or self._later) and not stopped():
                while self._queue and self._workers.free and not stopped():
                    group = self._queue.popleft()
                    self._running.add(group)
                    self._workers.start(group, self._task(self._groups[group]))
                if self._running or self._later:
                    self._workers.wait(0.2)
                self._again()
            self._outcome.interrupted |= bool(self._queue or self._running or self._later)
            if self._running:
                self._workers.stop()
                deadline = time.monotonic() + _GRACE_SECONDS
                while self._running and time.monotonic() < deadline:
                    self._workers.wait(0.2)
        finally:
            self._workers.close()

    def _add(self, groups: Sequence[Group]) -> None:
        self._queue.extend(range(len(self._groups), len(self._groups) + len(groups)))
        self._groups.extend(groups)
        labels = [self._study.label([run.config for run in group.runs]) for group in self._groups]
        self._report.plan([(label, len(group.runs)) for label, group in zip(labels, self._groups, strict=True)])

    def _tell(self, group: int, event: Event) -> None:
        if isinstance(event, Began):
            self._report.begin(group, event.step, event.steps)
        elif isinstance(event, Reached):
            self._report.at(group, event.step, event.latest)
        else:
            self._running.discard(group)
            self._bury(group, event) if isinstance(event, Died) else self._finish(group, event)

    def _finish(self, group: int, ending: Ending) -> None:
        self._outcome.trained += ending.trained
        if ending.status == "waiting" or (ending.status == "busy" and self._wait):
            if group not in self._told:
                self._told.add(group)
                self._report.say(group, f"{ending.message}; waiting")
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
            self._report.say(group, f"its worker died ({event.reason}); it goes on from its last checkpoint")
            self._queue.append(group)
            return
        message = f"its worker died {_DEATHS} times ({event.reason}); is there enough memory?"
        with contextlib.suppress(BusyError, OSError), self._groups[group].claim() as lease:
            for run in self._groups[group].runs:
                if not run.done:
                    run.start(lease)
                    run.fail(message, lease)
        self._finish(group, Ending("failed", message))

    def _again(self) -> None:
        """Try again what another process had; without the runs that it has finished."""
        for group in [group for group, when in self._later.items() if when < time.monotonic()]:
            del self._later[group]
            members = self._groups[group].runs
            open_runs = [run for run in members if not run.done]
            if len(open_runs) == len(members):
                self._queue.append(group)
            else:
                self._report.end(group, "done", f"{len(members) - len(open_runs)} done by another process")
                root = members[0].root
                self._add(plan(self._study, [run.config for run in open_runs], root) if open_runs else [])

    def _label(self, group: int) -> str:
        return self._study.label([run.config for run in self._groups[group].runs])


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
