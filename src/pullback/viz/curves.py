"""Curves with bands, as PNG and SVG, and their data as CSV."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Okabe and Ito's colours, which people with colour blindness can tell apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
_MARKERS = "osD^vPX"


@dataclass(frozen=True)
class Curve:
    """A line with a band around it."""

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


def draw(panels: Sequence[Panel], title: str, path: Path) -> list[Path]:
    """Draw panels side by side into `path`.png and `path`.svg, with one legend; nothing without Matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "pullback", "font.size": 9}):
        figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            for curve, colour, marker in zip(panel.curves, _COLOURS, _MARKERS, strict=False):
                few = {"marker": marker, "markersize": 4} if len(curve.x) <= 12 else {}
                axes.plot(curve.x, curve.y, color=colour, label=curve.label, linewidth=1.5, **few)
                axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
            axes.set_xlabel(panel.x_label)
            axes.set_ylabel(panel.y_label)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.25)
        figure.suptitle(title, fontsize=10)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False)
        written = [path.with_suffix(".png"), path.with_suffix(".svg")]
        figure.savefig(written[0], dpi=160)
        figure.savefig(written[1], metadata={"Date": None})
    return written


def as_csv(panels: Sequence[Panel]) -> str:
    """All points of all panels, one line each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["measure", "curve", "x", "y", "low", "high"])
    for panel in panels:
        for curve in panel.curves:
            for point in zip(curve.x, curve.y, curve.low, curve.high, strict=True):
                writer.writerow([panel.name, curve.label, *(f"{value:g}" for value in point)])
    return out.getvalue()
