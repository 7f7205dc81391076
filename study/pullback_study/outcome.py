"""What the runner tells: while it works, and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class Report:
    """Is told while groups of runs train, perhaps several at a time. This one keeps quiet; see `progress.py`."""

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        """The label and the number of runs of each group that will be trained; again when there are more of them."""

    def begin(self, group: int, step: int, steps: int) -> None:
        """A group begins, at a step above 0 if it was interrupted."""

    def at(self, group: int, step: int, latest: Sequence[dict[str, Any]]) -> None:
        """A group has reached a step; `latest` is the last evaluation of each run."""

    def end(self, group: int, status: str, message: str) -> None:
        """A group ends: `done`, `failed`, `stopped`, or `busy`, left to another process."""

    def say(self, group: int, message: str) -> None:
        """Something happened to a group that goes on, such as the death of its worker."""


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
