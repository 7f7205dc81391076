"""Progress of training on the terminal: a live display, or plain lines where there is no terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pullback.experiments.runner import Report

_QUIET_SECONDS = 10.0


class LiveReport(Report):
    """Two bars: the groups of runs, and the steps of the one that trains now, with its latest measures."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TimeRemainingColumn(compact=True),
            console=console, transient=True,
        )  # fmt: skip
        self._overall = self._progress.add_task("runs", total=None, note="")
        self._current = self._progress.add_task("", total=None, note="", visible=False)
        self._sizes: list[int] = []
        self._label = ""

    def __enter__(self) -> LiveReport:
        self._progress.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._progress.stop()

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        self._sizes = [size for _, size in groups]
        self._progress.update(self._overall, total=sum(self._sizes))

    def begin(self, label: str, steps: int) -> None:
        self._label = label
        self._progress.reset(self._current, total=steps, description=label, note="", visible=True)

    def at(self, step: int, latest: Sequence[dict[str, Any]]) -> None:
        self._progress.update(self._current, completed=step, note=_summary(latest))

    def end(self, message: str) -> None:
        self._progress.update(self._overall, advance=self._sizes.pop(0) if self._sizes else 0)
        if message != "done":
            self._progress.console.print(f"{self._label}: {message}", markup=False)


class PlainReport(Report):
    """A line for each group, and one now and then for a long one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._groups, self._number = 0, 0
        self._label, self._steps, self._began, self._said = "", 0, 0.0, 0.0

    def __enter__(self) -> PlainReport:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def plan(self, groups: Sequence[tuple[str, int]]) -> None:
        self._groups = len(groups)
        if groups:
            self._print(f"training {sum(size for _, size in groups)} runs in {len(groups)} groups")

    def begin(self, label: str, steps: int) -> None:
        self._number += 1
        self._label, self._steps = f"[{self._number}/{self._groups}] {label}", steps
        self._began = self._said = time.perf_counter()

    def at(self, step: int, latest: Sequence[dict[str, Any]]) -> None:
        if time.perf_counter() - self._said > _QUIET_SECONDS:
            self._said = time.perf_counter()
            self._print(f"{self._label}: step {step} of {self._steps}, {_summary(latest)}")

    def end(self, message: str) -> None:
        self._print(f"{self._label}: {message} after {time.perf_counter() - self._began:.1f} s")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _summary(latest: Sequence[dict[str, Any]]) -> str:
    """The mean of each measure over the runs of a group."""
    if not latest:
        return ""
    means = {name: statistics.fmean(row[name] for row in latest) for name in latest[0] if name != "step"}
    return ", ".join(f"{name.replace('_', '-')} {value:.3g}" for name, value in means.items())
