"""Figures as data: panels of curves with bands, or of one dot per seed; drawn by matplotlib, written as SVG and CSV."""

from __future__ import annotations

import csv
import io
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback.viz import visible
from pullback_study.results.choice import Chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Middle = Callable[[Sequence[float]], float]
# Okabe and Ito's colours, which people with colour blindness can tell apart; with the dashes, 28 lines look different.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8a7d00")
_DASHES = ("-", "--", ":", "-.")
# Text stays text, a dollar sign too, and the same data give the same file.
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "pullback", "text.parse_math": False, "font.size": 9.0}


@dataclass(frozen=True)
class Curve:
    """A line through the middle of the seeds, with their range; NaN where there is nothing. In strips: seeds and values."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    reference: float | None = None  # in strips: the published number


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes; or strips, a distribution over the seeds for each: quartiles, median and every seed."""

    name: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    strips: bool = False

    @property
    def height(self) -> float:
        return 1.0 + 0.25 * len(self.curves) if self.strips else 3.2 + 0.2 * math.ceil(len(self.curves) / 4)

    def draw(self, axes: Axes, numbers: Mapping[str, int]) -> None:
        axes.set(xlabel=visible(self.x_label), ylabel=visible(self.y_label))
        if self.strips:
            return self._draw_strips(axes)
        for curve in self.curves:
            i = numbers[curve.label]
            colour, dash = _COLOURS[i % len(_COLOURS)], _DASHES[i // len(_COLOURS) % len(_DASHES)]
            marker = "o" if len(curve.x) <= 12 else None
            axes.plot(curve.x, curve.y, dash, color=colour, marker=marker, markersize=3, label=visible(curve.label))
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.1, linewidth=0)

    def _draw_strips(self, axes: Axes) -> None:
        places, values = range(len(self.curves)), [[y for y in curve.y if math.isfinite(y)] for curve in self.curves]
        boxes = axes.boxplot(values, positions=places, orientation="horizontal", sym="", whis=0.0)
        for i, (curve, finite) in enumerate(zip(self.curves, values, strict=True)):
            axes.plot(finite, [i] * len(finite), ".", color=_COLOURS[0], alpha=0.4, markersize=5)
            if curve.reference is not None:
                axes.plot([curve.reference], [i], "o", fillstyle="none", color=_COLOURS[3])
        for line in boxes["medians"]:
            line.set_color("black")
        axes.set_yticks(places, [visible(curve.label) for curve in self.curves])
        axes.invert_yaxis()

    def points(self) -> list[list[str]]:
        return [
            [self.name, curve.label, *("" if value is None else f"{value:g}" for value in point)]
            for curve in self.curves
            for point in itertools.zip_longest(curve.x, curve.y, curve.low, curve.high)
        ]


@dataclass(frozen=True)
class Figure:
    """Panels side by side."""

    title: str
    panels: Sequence[Panel]
    name: str  # of its files
    note: str = ""  # what the lines are

    @property
    def drawn(self) -> bool:
        return any(panel.points() for panel in self.panels)

    def svg(self) -> str:
        """One self-contained drawing."""
        import matplotlib
        from matplotlib.figure import Figure as Canvas

        out = io.StringIO()
        lines = dict.fromkeys(curve.label for panel in self.panels for curve in panel.curves)
        numbers = {label: i for i, label in enumerate(lines)}  # the same colour in every panel
        with matplotlib.rc_context(_STYLE):
            canvas = Canvas((4.6 * len(self.panels), max(panel.height for panel in self.panels)), layout="constrained")
            places = canvas.subplots(1, len(self.panels), squeeze=False)[0]
            for panel, axes in zip(self.panels, places, strict=True):
                axes.grid(alpha=0.2)
                panel.draw(axes, numbers)
            legend = {label: line for axes in places for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
            if legend:
                canvas.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=4, frameon=False)
            canvas.suptitle(visible(self.title))
            canvas.savefig(out, format="svg", metadata={"Date": None})
        return out.getvalue()

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

        files = {folder / f"{self.name}.svg": self.svg(), folder / f"{self.name}.csv": self.csv()}
        for path, content in files.items():
            write_atomically(path, content)
        return list(files)


def learning_curves(
    rows: Sequence[Chosen], measures: Mapping[str, str], unit: str = "step", middle: Middle = statistics.median
) -> list[Panel]:
    """A panel for each measure (its label by its name), with a curve against steps or epochs for each row that has runs."""
    return [
        panel(name, f"{unit.capitalize()}s", label, {row.method.label: row.histories(name, unit) for row in rows}, middle)
        for name, label in measures.items()
    ]


def curves_against(
    x_label: str, at: Mapping[Any, Sequence[Chosen]], measures: Mapping[str, str], middle: Middle = statistics.median
) -> list[Panel]:
    """A panel for each measure of the results, with a curve for each row; `at` has the same rows at each x."""
    panels = []
    for name, label in measures.items():
        points: dict[str, list[dict[Any, float]]] = defaultdict(list)
        for x, row in ((x, row) for x, rows in at.items() for row in rows):
            points[row.method.label] += [{x: value} for value in row.values(name)]
        panels.append(panel(name, x_label, label, points, middle))
    return panels


def panel(name: str, x_label: str, label: str, histories: Mapping[str, Any], middle: Middle = statistics.median) -> Panel:
    """A curve for each row whose seeds have a history."""
    curves = [over_seeds(row, each, middle) for row, each in histories.items()]
    return Panel(name, x_label, label, [curve for curve in curves if curve.x])


def over_seeds(
    label: str, histories: Sequence[Mapping[Any, float]], middle: Middle = statistics.median, most: int = 200
) -> Curve:
    """One curve from the histories of several seeds: the middle, the lowest and the highest of those that got so far.

    A long curve is thinned to about `most` points, the last one always among them.
    """
    reached = sorted({x for history in histories for x in history})
    every = max(1, math.ceil(len(reached) / most))
    xs = reached[(len(reached) - 1) % every :: every]
    points = [[value for h in histories if math.isfinite(value := h.get(x, math.nan))] or [math.nan] for x in xs]
    return Curve(label, xs, [middle(p) for p in points], [min(p) for p in points], [max(p) for p in points])
