"""Where groups train: in this process, in a pool of processes, or on a cluster."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback_study.leases import Watch
from pullback_study.training import Ending, Task, train_group


@dataclass(frozen=True)
class Began:
    step: int
    steps: int


@dataclass(frozen=True)
class Reached:
    step: int
    latest: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Died:
    """The worker is gone; the group goes on from its last checkpoint in another one."""

    reason: str


Event = Began | Reached | Ending | Died


class Workers(abc.ABC):
    """Train groups, one or several at a time, and tell what happens: `tell(group, event)`.

    Every group that was started ends with an `Ending` or with `Died`, exactly once.
    """

    def open(self, tell: Callable[[int, Event], None], stopped: Callable[[], bool], groups: int) -> None:
        """Called once, before any group: with whom to tell, whether to stop, and how many groups there are at most."""
        self.tell = tell
        self.stopped = stopped

    @property
    @abc.abstractmethod
    def free(self) -> bool:
        """Whether a group can be started now."""

    @abc.abstractmethod
    def start(self, group: int, task: Task) -> None:
        """Train a group."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> None:
        """Tell what has happened; return after at most that time."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Ask all workers to save what they do and stop."""

    @abc.abstractmethod
    def close(self) -> None:
        """Leave nothing behind."""


class ThisProcess(Workers):
    """One group after the other, in this process."""

    def __init__(self) -> None:
        self._watch: Watch | None = None

    @property
    def free(self) -> bool:
        return True

    def start(self, group: int, task: Task) -> None:
        self._watch = self._watch or Watch(task.terms)
        self.tell(group, train_group(task, Teller(lambda event: self.tell(group, event)), self.stopped, self._watch))

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


class Teller:
    """A listener of `train_group` that passes events on, and no more than ten a second about how far it is."""

    def __init__(self, send: Callable[[Began | Reached], None]) -> None:
        self._send = send
        self._said = 0.0

    def begin(self, step: int, steps: int) -> None:
        self._send(Began(step, steps))

    def at(self, step: int, latest: Sequence[dict[str, Any]]) -> None:
        if time.monotonic() - self._said > 0.1:
            self._said = time.monotonic()
            self._send(Reached(step, latest))
