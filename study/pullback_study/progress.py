"""Progress of training on the terminal: a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pullback_study.outcome import Report

_QUIET_SECONDS = 10.0


class Tally:
    """How much is done of what was planned, and how long the rest will take.

    Time left: the time so far, times what is left, over what was done in it; a group counts by its number of runs and a
    group that trains by the share of its steps.
    """

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.sizes: list[int] = []
        self.running: dict[int, tuple[int, int, int]] = {}
        self.ended = 0
        self.runs_ended = 0
        self.failed = 0
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

    def begin(self, group: int, step: int, steps: int) -> None:
        self.running[group] = (step, step, steps)

    def at(self, group: int, step: int) -> None:
        if group in self.running:  # else it is old news, of a worker that has died since
            first, _, steps = self.running[group]
            self.running[group] = (first, step, steps)

    def end(self, group: int, status: str) -> None:
        first, _, steps = self.running.pop(group, (0, 0, 0))
        self.ended += 1
        self.runs_ended += self.sizes[group]
        self.failed += status == "failed"
        if status == "done" and steps:
            self._worked += self.sizes[group] * (1 - first / steps)

    def __str__(self) -> str:
        parts = [f"{self.runs_ended} of {sum(self.sizes)} runs", f"{len(self.running)} groups running"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{_duration(self.left)} left"] if self.left is not None else []
        return ", ".join(parts)


class LiveReport(Report):
    """A bar for all runs, and one for each group that trains now, with its latest measures."""

    def __init__(self, console: Console) -> None:
        self._tally = Tally()
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(), console=console, transient=True,
        )  # fmt: skip
        self._overall = self._progress.add_task("all", total=None, note="")
        self._bars: dict[int, TaskID] = {}

    def __enter__(self) -> LiveReport:
        self._progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._progress.stop()

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        self._tally.plan(groups)
        self._show()

    def begin(self, group: int, step: int, steps: int) -> None:
        self._tally.begin(group, step, steps)
        self._drop(group)
        self._bars[group] = self._progress.add_task(self._tally.labels[group], total=steps, completed=step, note="")
        self._show()

    def at(self, group: int, step: int, latest: Sequence[dict[str, Any]]) -> None:
        self._tally.at(group, step)
        if group in self._bars:
            self._progress.update(self._bars[group], completed=step, note=summary(latest))
        self._show()

    def end(self, group: int, status: str, message: str) -> None:
        self._tally.end(group, status)
        self._drop(group)
        self._show()
        if status != "done":
            self.say(group, message)

    def say(self, group: int, message: str) -> None:
        self._progress.console.print(f"{self._tally.labels[group]}: {message}", markup=False, highlight=False)

    def _drop(self, group: int) -> None:
        if group in self._bars:
            self._progress.remove_task(self._bars.pop(group))

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
            self._print(f"training {sum(size for _, size in groups)} runs in {len(groups)} groups")
        self._tally.plan(groups)

    def begin(self, group: int, step: int, steps: int) -> None:
        self._tally.begin(group, step, steps)
        self._began[group] = time.monotonic()

    def at(self, group: int, step: int, latest: Sequence[dict[str, Any]]) -> None:
        self._tally.at(group, step)
        if group in self._tally.running and time.monotonic() - self._said > _QUIET_SECONDS:
            self._said = time.monotonic()
            steps = self._tally.running[group][2]
            self._print(f"{self._tally.labels[group]}: step {step} of {steps}, {summary(latest)}; {self._tally}")

    def end(self, group: int, status: str, message: str) -> None:
        self._tally.end(group, status)
        after = f" after {time.monotonic() - self._began[group]:.1f} s" if group in self._began else ""
        self._print(f"[{self._tally.ended}/{len(self._tally.sizes)}] {self._tally.labels[group]}: {message}{after}")
        self._said = time.monotonic()

    def say(self, group: int, message: str) -> None:
        self._print(f"{self._tally.labels[group]}: {message}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def summary(latest: Sequence[dict[str, Any]]) -> str:
    """The mean of each measure over the runs of a group."""
    if not latest:
        return ""
    numbers = [name for name in latest[0] if name != "step" and all(_is_number(row.get(name)) for row in latest)]
    means = {name: statistics.fmean(row[name] for row in latest) for name in numbers}
    return ", ".join(f"{name.replace('_', '-')} {value:.3g}" for name, value in means.items())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _duration(seconds: float | None) -> str:
    """In words as short as they are true: 40 s, 12 min, 3.4 h."""
    seconds = seconds or 0.0
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
