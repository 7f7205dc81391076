"""Progress of training, on stderr: a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from pullback_study.runs.train import Report
from pullback_study.runs.work import Reached

_QUIET_SECONDS = 10.0
_NOTES = ("loss", "accuracy", "v_measure", "examples_per_second")


class Tally:
    """How much is done of what was planned, and how long the rest will take.

    Time left: the time so far, times what is left, over what was done in it; a group counts by its number of runs and a
    group that trains by the share of its steps.
    """

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.sizes: list[int] = []
        self.running: dict[int, tuple[int, int, int]] = {}
        self.ended = self.runs_ended = self.failed = 0
        self._worked = 0.0
        self._began = time.monotonic()

    @property
    def left(self) -> float | None:
        """Seconds, or None before anything can be said."""
        worked, ahead = self._worked, float(sum(self.sizes) - self.runs_ended)
        for group, (first, step, steps) in self.running.items():
            worked += self.sizes[group] * (step - first) / max(1, steps)
            ahead -= self.sizes[group] * step / max(1, steps)
        return (time.monotonic() - self._began) * ahead / worked if worked > 0.02 * ahead else None

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        self.labels = [label for label, _ in groups]
        self.sizes = [size for _, size in groups]

    def at(self, group: int, event: Reached) -> None:
        first = self.running[group][0] if group in self.running and self.running[group][2] else event.step
        self.running[group] = (first, event.step, event.steps)

    def end(self, group: int, status: str) -> None:
        first, _, steps = self.running.pop(group, (0, 0, 0))
        self.ended += 1
        self.runs_ended += self.sizes[group]
        self.failed += status == "failed"
        if status == "done" and steps:
            self._worked += self.sizes[group] * (1 - first / steps)

    def __str__(self) -> str:
        parts = [f"{self.runs_ended} of {count(sum(self.sizes), 'run')}"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{_duration(self.left)} left"] if self.left is not None else []
        return ", ".join(parts)


class LiveReport(Report):
    """A bar for all runs, and one for each group that trains now, with its latest measures.

    The labels and the measures give way when the terminal is narrow; the bars stay.
    """

    def __init__(self, console: Console) -> None:
        self._tally = Tally()
        self._progress = Progress(
            TextColumn("{task.description}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            console=console, transient=True, expand=True,
        )  # fmt: skip
        self._overall = self._progress.add_task("all runs", total=None, note="")
        self._bars: dict[int, TaskID] = {}

    def __enter__(self) -> LiveReport:
        self._progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._progress.stop()

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        self._tally.plan(groups)
        self._show()

    def at(self, group: int, event: Reached) -> None:
        self._tally.at(group, event)
        if group not in self._bars:
            self._bars[group] = self._progress.add_task(self._tally.labels[group], total=None, note="starting")
        note = summary(event.latest) or ("starting" if not event.steps else "")
        self._progress.update(self._bars[group], completed=event.step, total=event.steps or None, note=note)
        self._show()

    def end(self, group: int, status: str, message: str) -> None:
        self._tally.end(group, status)
        self._drop(group)
        if status != "done":
            self._say(group, message)

    def pause(self, group: int, message: str) -> None:
        self._tally.running.pop(group, None)
        self._drop(group)
        self._say(group, message)

    def _say(self, group: int, message: str) -> None:
        text = f"{self._tally.labels[group]}: {message}"
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _drop(self, group: int) -> None:
        if group in self._bars:
            self._progress.remove_task(self._bars.pop(group))
        self._show()

    def _show(self) -> None:
        total, ended = sum(self._tally.sizes), self._tally.runs_ended
        self._progress.update(self._overall, total=total, completed=ended, note=str(self._tally))


class PlainReport(Report):
    """A line for each group, and one now and then for a long one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tally = Tally()
        self._began: dict[int, float] = {}
        self._said = time.monotonic()

    def __enter__(self) -> PlainReport:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        if groups and not self._tally.sizes:
            self._print(f"Training {count(sum(size for _, size in groups), 'run')}")
        self._tally.plan(groups)

    def at(self, group: int, event: Reached) -> None:
        self._tally.at(group, event)
        self._began.setdefault(group, time.monotonic())
        if event.latest and time.monotonic() - self._said > _QUIET_SECONDS:
            self._said = time.monotonic()
            where = f"step {event.step} of {event.steps}"
            self._print(f"{self._tally.labels[group]}: {where}, {summary(event.latest)}; {self._tally}")

    def end(self, group: int, status: str, message: str) -> None:
        self._tally.end(group, status)
        after = f" after {time.monotonic() - self._began[group]:.1f} s" if group in self._began else ""
        self._print(f"[{self._tally.ended}/{len(self._tally.sizes)}] {self._tally.labels[group]}: {message}{after}")
        self._said = time.monotonic()

    def pause(self, group: int, message: str) -> None:
        self._tally.running.pop(group, None)
        self._print(f"{self._tally.labels[group]}: {message}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def summary(latest: Sequence[dict[str, Any]]) -> str:
    """The mean of the measures that people watch, over the runs of a group."""
    names = [name for name in _NOTES if latest and all(isinstance(row.get(name), int | float) for row in latest)]
    means = {name: statistics.fmean(row[name] for row in latest) for name in names}
    return ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in means.items())


def count(number: int, what: str) -> str:
    """The number and the noun, in the singular or the plural.

    >>> count(1, "run"), count(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _duration(seconds: float | None) -> str:
    """In words as short as they are true: 40 s, 12 min, 3.4 h."""
    seconds = seconds or 0.0
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
