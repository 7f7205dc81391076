"""Figures as data: panels of curves with bands, or of one dot per seed; written as SVG and CSV."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_study.results import svg
from pullback_study.results.cells import Cell
from pullback_study.results.choice import Chosen, number

Middle = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Curve:
    """A line through the middle of the seeds, with their range; NaN where there is nothing."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes."""

    name: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]

    def svg(self) -> str:
        return svg.lines(self.curves, self.x_label, self.y_label)

    def points(self) -> list[list[object]]:
        return [
            [self.name, curve.label, *(f"{value:g}" for value in point)]
            for curve in self.curves
            for point in zip(curve.x, curve.y, curve.low, curve.high, strict=True)
        ]


@dataclass(frozen=True)
class Strips:
    """Distributions over the seeds, a line for each row of a table."""

    name: str
    label: str
    rows: Sequence[tuple[str, Cell]]

    def svg(self) -> str:
        return svg.strips(self.rows, self.label)

    def points(self) -> list[list[object]]:
        return [
            [self.name, label, str(seed), f"{value:g}", "", ""]
            for label, cell in self.rows
            for seed, value in zip(cell.seeds or range(cell.count), cell.values, strict=True)
        ]


@dataclass(frozen=True)
class Figure:
    """Panels side by side."""

    title: str
    panels: Sequence[Panel | Strips]
    name: str  # of its files
    note: str = ""  # what the lines are
    command: str = ""  # makes its runs

    @property
    def drawn(self) -> bool:
        return any(panel.points() for panel in self.panels)

    def svg(self) -> str:
        """One self-contained drawing, for light and dark pages."""
        return svg.beside([panel.svg() for panel in self.panels], self.title)

    def csv(self) -> str:
        """All points of all panels, one line each."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["measure", "curve", "x", "y", "low", "high"])
        writer.writerows(point for panel in self.panels for point in panel.points())
        return out.getvalue()

    def write(self, folder: Path) -> list[Path]:
        """`<name>.svg` and `<name>.csv`."""
        from pullback_study.runs.files import write_atomically

        for suffix, content in ((".svg", self.svg()), (".csv", self.csv())):
            write_atomically(folder / f"{self.name}{suffix}", content)
        return [folder / f"{self.name}{suffix}" for suffix in (".svg", ".csv")]


def learning_curves(
    rows: Sequence[Chosen], measures: Mapping[str, str], unit: str = "step", middle: Middle = statistics.median
) -> list[Panel]:
    """A panel for each measure (its label by its name), with a curve against steps or epochs for each row that has runs."""

    def curves(measure: str) -> list[Curve]:
        return [over_seeds(row.method.label, row.histories(measure, unit), middle) for row in rows if row.done]

    return _panels(curves, measures, f"{unit.capitalize()}s")


def curves_against(
    x_label: str, at: Mapping[Any, Sequence[Chosen]], measures: Mapping[str, str], middle: Middle = statistics.median
) -> list[Panel]:
    """A panel for each measure of the results, with a curve for each row; `at` has the same rows at each x."""

    def curves(measure: str) -> list[Curve]:
        found = []
        for rows in zip(*at.values(), strict=True):
            seeds: dict[int | None, dict[Any, float]] = {}
            for x, row in zip(at, rows, strict=True):
                for run in row.done:
                    seeds.setdefault(run.seed, {})[x] = number(run, measure)
            found.append(over_seeds(rows[0].method.label, list(seeds.values()), middle))
        return found

    return _panels(curves, measures, x_label)


def _panels(curves: Callable[[str], Sequence[Curve]], measures: Mapping[str, str], x_label: str) -> list[Panel]:
    return [Panel(name, x_label, label, [each for each in curves(name) if each.x]) for name, label in measures.items()]


def over_seeds(
    label: str,
    histories: Sequence[Mapping[Any, float]],
    middle: Middle = statistics.median,
    most: int = 200,
) -> Curve:
    """One curve from the histories of several seeds: the middle, the lowest and the highest of those that got so far.

    A long curve is thinned to about `most` points, the last one always among them.

    >>> over_seeds("a", [{1: 2.0, 2: 4.0}, {1: 3.0}]).y
    [2.5, 4.0]
    """
    reached = sorted({x for history in histories for x in history})
    every = max(1, math.ceil(len(reached) / most))
    xs = reached[(len(reached) - 1) % every :: every]
    points = [[value for h in histories if math.isfinite(value := h.get(x, math.nan))] or [math.nan] for x in xs]
    return Curve(label, xs, [middle(p) for p in points], [min(p) for p in points], [max(p) for p in points])
