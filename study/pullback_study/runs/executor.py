"""Where groups train: in this process, in a pool of processes (`pool.py`), or on a Ray cluster (`ray_tasks.py`)."""

from __future__ import annotations

import abc
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from pullback_study.runs.work import Died, Ending, Job, Reached, Tell, train_group

Event = Reached | Ending | Died


class Executor(abc.ABC):
    """Trains groups, one or several at a time, and tells what happens: `tell(group, event)`.

    Every group that was started ends with an `Ending` or with `Died`, exactly once.
    """

    def open(self, tell: Callable[[int, Event], None], stopped: Callable[[], bool], groups: int) -> None:
        """Called once, before any group: whom to tell, whether to stop, and how many groups there are at most."""
        self.tell = tell
        self.stopped = stopped

    @property
    @abc.abstractmethod
    def free(self) -> bool:
        """Whether a group can be started now."""

    @abc.abstractmethod
    def start(self, group: int, job: Job) -> None:
        """Train a group."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> None:
        """Tell what has happened; return after at most that time."""

    def stop(self) -> None:  # noqa: B027
        """Ask all workers to save what they do and stop."""

    def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""


class ThisProcess(Executor):
    """One group after the other, in this process."""

    free = True

    def start(self, group: int, job: Job) -> None:
        self.tell(group, train_group(job, rarely(lambda event: self.tell(group, event)), self.stopped))

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def rarely(tell: Tell, seconds: float = 0.1) -> Tell:
    """Passes on at most one event per `seconds`, and every one without an evaluation."""
    last = 0.0

    def passed_on(event: Reached) -> None:
        nonlocal last
        if not event.latest or time.monotonic() - last > seconds:
            last = time.monotonic()
            tell(event)

    return passed_on


def cores() -> int:
    """The cores this process may use: those it is bound to, and no more than a container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, int(quota) // int(period)))
    return count
