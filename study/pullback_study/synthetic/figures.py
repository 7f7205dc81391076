"""The two figures of the synthetic study, from run directories alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from pullback.viz.curves import Curve, Panel, as_csv, draw
from pullback_study.runs import write_atomically
from pullback_study.synthetic.methods import METHODS
from pullback_study.synthetic.plans import STEPPED, Cell, Chosen, Scope, choose, steps_cell, table_cell

CURVES = ("marginals", "perturb-and-map", "ste-i", "spigot", "spigot-ce", "spigot-eg")
_LABELS = {"accuracy": "Accuracy (%)", "v_measure": "V-measure (%)"}


def curves_cells(scope: Scope) -> list[Cell]:
    """The runs of the learning curves: 10 clusters, the paper's best settings."""
    return [table_cell(name, 10, grid=False, scope=scope) for name in CURVES]


def draw_curves(scope: Scope, root: Path, folder: Path) -> list[Path]:
    """Validation accuracy and V-measure against steps: the median over the seeds, and their range."""
    found = [_chosen(cell, root) for cell in curves_cells(scope)]
    panels = []
    for measure, label in _LABELS.items():
        curves = []
        for chosen in found:
            runs = [run.metrics for run in chosen.runs]
            steps = [row["step"] for row in runs[0]]
            points = [[_number(metrics[i][measure]) for metrics in runs] for i in range(len(steps))]
            curves.append(_curve(METHODS[chosen.config.estimator].row, steps, points))
        panels.append(Panel(measure, "Steps", f"Validation: {label}", curves))
    title = f"Learning curves, 10 clusters (median and range of {len(scope.seeds)} seeds)"
    return _write(panels, title, folder / "synthetic-curves")


def steps_cells(scope: Scope) -> list[Cell]:
    """The runs of the figure on multiple updates."""
    return [steps_cell(name, k, scope=scope) for name in STEPPED for k in scope.inner_steps]


def draw_steps(scope: Scope, root: Path, folder: Path) -> list[Path]:
    """Test accuracy and V-measure against the number of inner steps, the best step size at each point."""
    panels = []
    for measure, label in _LABELS.items():
        curves = []
        for name in STEPPED:
            found = [_chosen(steps_cell(name, k, scope=scope), root) for k in scope.inner_steps]
            points = [chosen.values(f"test_{measure}") for chosen in found]
            curves.append(_curve(METHODS[name].row, scope.inner_steps, points))
        panels.append(Panel(measure, "Inner steps", label, curves))
    title = f"Impact of multiple updates, 10 clusters (median and range of {len(scope.seeds)} seeds)"
    return _write(panels, title, folder / "synthetic-steps")


def _chosen(cell: Cell, root: Path) -> Chosen:
    chosen = choose(cell, root)
    if chosen is None:
        raise ValueError(f"the runs of {METHODS[cell.estimator].row} with {cell.clusters} clusters are not all done")
    return chosen


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _curve(label: str, x: Sequence[float], points: Sequence[Sequence[float]]) -> Curve:
    middle = [statistics.median(values) for values in points]
    return Curve(label, x, middle, [min(values) for values in points], [max(values) for values in points])


def _write(panels: Sequence[Panel], title: str, path: Path) -> list[Path]:
    write_atomically(path.with_suffix(".csv"), as_csv(panels))
    return [*draw(panels, title, path), path.with_suffix(".csv")]
