"""Progress of training, on stderr: a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from pullback_study.runs.train import Report
from pullback_study.runs.work import Reached

_QUIET_SECONDS = 10.0
_NOTES = ("loss", "accuracy", "v_measure", "examples_per_second")


class PlainReport(Report):
    """A line for each group, and one now and then for a long one.

    Time left: the time so far, times what is left, over what was done in it; a group counts by its number of runs and a
    group that trains by the share of its steps.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._labels: list[str] = []
        self._sizes: list[int] = []
        self._running: dict[int, tuple[int, int, int]] = {}  # first step, step, steps
        self._started: dict[int, float] = {}
        self._ended = self._runs_ended = self._failed = 0
        self._worked = 0.0
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        if groups and not self._sizes:
            self._open(_runs(sum(size for _, size in groups)))
        self._labels, self._sizes = [label for label, _ in groups], [size for _, size in groups]

    def at(self, group: int, event: Reached) -> None:
        known = self._running.get(group, (0, 0, 0))
        self._running[group] = (known[0] if known[2] else event.step, event.step, event.steps)
        self._started.setdefault(group, time.monotonic())
        self._show(group, event)

    def end(self, group: int, status: str, message: str) -> None:
        first, _, steps = self._running.pop(group, (0, 0, 0))
        self._ended += 1
        self._runs_ended += self._sizes[group]
        self._failed += status == "failed"
        self._worked += self._sizes[group] * (1 - first / steps) if status == "done" and steps else 0.0
        self._close(group, status, message)

    def pause(self, group: int, message: str) -> None:
        self._running.pop(group, None)
        self._close(group, "paused", message)

    @property
    def left(self) -> float | None:
        """Seconds, or None before anything can be said."""
        worked, ahead = self._worked, float(sum(self._sizes) - self._runs_ended)
        for group, (first, step, steps) in self._running.items():
            worked += self._sizes[group] * (step - first) / max(1, steps)
            ahead -= self._sizes[group] * step / max(1, steps)
        return (time.monotonic() - self._began) * ahead / worked if worked > 0.02 * ahead else None

    @property
    def overall(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        left = "" if self.left is None else f", {_duration(self.left)} left"
        return f"{self._runs_ended} of {_runs(sum(self._sizes))}{failed}{left}"

    def _open(self, runs: str) -> None:
        self._print(f"Training {runs}")

    def _show(self, group: int, event: Reached) -> None:
        if event.latest and time.monotonic() - self._said > _QUIET_SECONDS:
            self._said = time.monotonic()
            where = f"step {event.step} of {event.steps}"
            self._print(f"{self._labels[group]}: {where}, {summary(event.latest)}; {self.overall}")

    def _close(self, group: int, status: str, message: str) -> None:
        if status == "paused":
            self._print(f"{self._labels[group]}: {message}")
            return
        after = f" after {time.monotonic() - self._started[group]:.1f} s" if group in self._started else ""
        self._print(f"[{self._ended}/{len(self._sizes)}] {self._labels[group]}: {message}{after}")
        self._said = time.monotonic()

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveReport(PlainReport):
    """A bar for all runs, and one for each group that trains now, with its latest measures.

    The labels and the measures give way when the terminal is narrow; the bars stay.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.progress = Progress(
            TextColumn("{task.description}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            console=console, transient=True, expand=True,
        )  # fmt: skip
        self._all = self.progress.add_task("all runs", total=None, note="")
        self._bars: dict[int, TaskID] = {}

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.progress.stop()

    def _open(self, runs: str) -> None:
        pass

    def _show(self, group: int, event: Reached) -> None:
        if group not in self._bars:
            self._bars[group] = self.progress.add_task(self._labels[group], total=None, note="starting")
        note = summary(event.latest) or ("starting" if not event.steps else "")
        self.progress.update(self._bars[group], completed=event.step, total=event.steps or None, note=note)
        self._update()

    def _close(self, group: int, status: str, message: str) -> None:
        if group in self._bars:
            self.progress.remove_task(self._bars.pop(group))
        self._update()
        if status != "done":
            self._print(f"{self._labels[group]}: {message}")

    def _update(self) -> None:
        self.progress.update(self._all, total=sum(self._sizes), completed=self._runs_ended, note=self.overall)


def summary(latest: Sequence[dict[str, Any]]) -> str:
    """The mean of the measures that people watch, over the runs of a group."""
    names = [name for name in _NOTES if latest and all(isinstance(row.get(name), int | float) for row in latest)]
    means = {name: statistics.fmean(row[name] for row in latest) for name in names}
    return ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in means.items())


def _duration(seconds: float) -> str:
    """In words as short as they are true: 40 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _runs(number: int) -> str:
    return f"{number} run" + "s" * (number != 1)
