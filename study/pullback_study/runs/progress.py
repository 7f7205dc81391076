"""Progress of training, on stderr: a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from pullback_study.runs.train import Report
from pullback_study.runs.work import Reached

_QUIET_SECONDS = 10.0
_NOTES = ("loss", "accuracy", "v_measure", "examples_per_second")


class PlainReport(Report):
    """A line for each group, and one now and then for a long one."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.groups: Sequence[tuple[str, int]] = ()  # labels, and numbers of runs
        self._started: dict[int, float] = {}
        self._ended, self._total, self._said = 0, 0, time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        if not self.groups:
            runs = sum(size for _, size in groups)
            self._print(f"Training {runs} run{'s' * (runs != 1)}")
        self.groups, self._total, self._started = groups, self._ended + len(groups), {}

    def at(self, group: int, event: Reached) -> None:
        self._started.setdefault(group, time.monotonic())
        if event.latest and time.monotonic() - self._said > _QUIET_SECONDS:
            self._said = time.monotonic()
            self._print(f"{self.groups[group][0]}: step {event.step} of {event.steps}, {summary(event.latest)}")

    def end(self, group: int, status: str, message: str) -> None:
        if status == "again":
            self._print(f"{self.groups[group][0]}: {message}")
            return
        self._ended, self._said = self._ended + 1, time.monotonic()
        after = f" after {self._said - self._started[group]:.1f} s" if group in self._started else ""
        self._print(f"[{self._ended}/{self._total}] {self.groups[group][0]}: {message}{after}")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveReport(PlainReport):
    """A bar for all runs, and one for each group that trains now, with its latest measures and the time left.

    The labels and the measures give way when the terminal is narrow; the bars stay.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.progress = Progress(
            TextColumn("{task.description}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            console=console, transient=True, expand=True, speed_estimate_period=600,
        )  # fmt: skip
        self._all = self.progress.add_task("all runs", total=None, note="")
        self._bars: dict[int, TaskID] = {}
        self._failed = 0

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.progress.stop()

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        self.groups = groups
        done = self.progress.tasks[0].completed
        self.progress.update(self._all, total=done + sum(size for _, size in groups))

    def at(self, group: int, event: Reached) -> None:
        if group not in self._bars:
            self._bars[group] = self.progress.add_task(self.groups[group][0], total=None, note="starting")
        note = summary(event.latest) or ("starting" if not event.steps else "")
        self.progress.update(self._bars[group], completed=event.step, total=event.steps or None, note=note)

    def end(self, group: int, status: str, message: str) -> None:
        self._failed += status == "failed"
        ended = self.groups[group][1] if status != "again" else 0
        self.progress.update(self._all, advance=ended, note=f"{self._failed} failed" if self._failed else "")
        if group in self._bars:
            self.progress.remove_task(self._bars.pop(group))
        if status != "done":
            self._print(f"{self.groups[group][0]}: {message}")


def summary(latest: Sequence[dict[str, Any]]) -> str:
    """The mean of the measures that people watch, over the runs of a group."""
    names = [name for name in _NOTES if latest and all(isinstance(row.get(name), int | float) for row in latest)]
    means = {name: statistics.fmean(row[name] for row in latest) for name in names}
    return ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in means.items())
