"""Progress of training, on stderr: a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from pullback.viz import visible
from pullback_study.runs.work import Reached

_QUIET_SECONDS = 10.0
_NOTES = ("loss", "accuracy", "v_measure", "examples_per_second")


class Report:
    """Is told while groups train, perhaps several at a time.

    On a terminal it shows a bar for all runs, and one for each group that trains now, with its latest measures and the time
    left; elsewhere a line for each group, and one now and then for a long one.
    """

    def __init__(self, console: Console) -> None:
        self.console, self.live = console, console.is_terminal and not console.quiet
        self.progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            console=console, transient=True, expand=True, speed_estimate_period=600, disable=not self.live,
        )  # fmt: skip
        self.groups: Sequence[tuple[str, int]] = ()  # labels, and numbers of runs
        self._all = self.progress.add_task("all runs", total=None, note="")
        self._bars: dict[int, tuple[TaskID, float]] = {}  # of the groups that train, and since when
        self._failed, self._ended, self._total, self._said = 0, 0, 0, time.monotonic()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.progress.stop()

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        """The label and the number of runs of each group that will be trained now; again for those that are tried again."""
        runs = sum(size for _, size in groups)
        if not self.groups and not self.live:
            self._print(f"Training {runs} run{'s' * (runs != 1)}")
        self.groups, self._total = [(visible(label), size) for label, size in groups], self._ended + len(groups)
        self.progress.update(self._all, total=self.progress.tasks[0].completed + runs)

    def at(self, group: int, event: Reached) -> None:
        """A group has begun, or reached a step."""
        label, now = self.groups[group][0], time.monotonic()
        if group not in self._bars:
            self._bars[group] = self.progress.add_task(label, total=None, note="starting"), now
        latest = event.latest  # the mean of the measures that people watch, over the runs of the group
        names = [name for name in _NOTES if latest and all(isinstance(row.get(name), int | float) for row in latest)]
        means = {name: statistics.fmean(row[name] for row in latest) for name in names}
        words = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in means.items())
        note = words or ("starting" if not event.steps else "")
        self.progress.update(self._bars[group][0], completed=event.step, total=event.steps or None, note=note)
        if event.latest and not self.live and now - self._said > _QUIET_SECONDS:
            self._said = now
            self._print(f"{label}: step {event.step} of {event.steps}, {note}")

    def end(self, group: int, status: str, message: str) -> None:
        """A group ends: `done`, `failed`, `stopped`, `busy`, left to another process, or `again`: it is tried again later."""
        (label, runs), now, place = self.groups[group], time.monotonic(), ""
        bar, began = self._bars.pop(group, (None, now))
        if bar is not None:
            self.progress.remove_task(bar)
        if status != "again":
            self._failed, self._ended, self._said = self._failed + (status == "failed"), self._ended + 1, now
            self.progress.update(self._all, advance=runs, note=f"{self._failed} failed" if self._failed else "")
            place = "" if self.live else f"[{self._ended}/{self._total}] "
        if status != "done" or not self.live:
            self._print(f"{place}{label}: {message}" + (f" after {now - began:.1f} s" if place and bar is not None else ""))

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
