"""The table of synthetic results beside the paper's, and the verdicts, from run directories alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pullback.viz.tables import Table
from pullback_study.paper import reported
from pullback_study.statistics import standard_error
from pullback_study.synthetic.methods import METHODS
from pullback_study.synthetic.plans import Cell, Chosen, choose

_MEASURES = ("accuracy", "v_measure")


def results_table(title: str, cells: Sequence[Cell], root: Path) -> Table:
    """One setting of the paper's table of synthetic results, ours beside the paper's.

    Median and standard error over the seeds, on the test set after the last step. A number is marked with ≠ where the
    two medians differ by more than the two standard errors together.
    """
    table = Table(title, ["Model", "Accuracy", "paper", "V-measure", "paper"])
    kind = None
    for cell in cells:
        method = METHODS[cell.estimator]
        if method.kind != kind:
            table.rows.append([method.kind])
            kind = method.kind
        chosen = choose(cell, root)
        table.rows.append([f"{'*' * method.stochastic}{method.row}", *_cells(cell, chosen)])
    table.notes.append("*: stochastic. ≠: the medians differ by more than both standard errors together.")
    return table


def settings_table(cells: Sequence[Cell], root: Path) -> Table:
    """Which learning rate and step size each row has, by validation accuracy where there was a choice."""
    table = Table("Settings", ["Model", "clusters", "learning rate", "step size", "candidates"])
    for cell in cells:
        chosen = choose(cell, root)
        if chosen is not None:
            size = "" if chosen.config.step_size is None else f"{chosen.config.step_size:g}"
            rate = f"{chosen.config.learning_rate:g}"
            row = [METHODS[cell.estimator].row, str(cell.clusters), rate, size, str(len(cell.candidates))]
            table.rows.append(row)
    return table



def _cells(cell: Cell, chosen: Chosen | None) -> list[str]:
    out = []
    for measure in _MEASURES:
        paper = None
        if METHODS[cell.estimator].in_paper:
            paper = reported("synthetic", METHODS[cell.estimator].row, f"{cell.clusters} clusters", measure)
        theirs = "" if paper is None else _show(paper.value, paper.spread)
        if chosen is None:
            out += ["not run", theirs]
            continue
        values = chosen.values(f"test_{measure}")
        median, error = statistics.median(values), standard_error(values)
        differs = paper is not None and abs(median - paper.value) > error + paper.spread
        out += [_show(median, error) + ("≠" if differs else " "), theirs]
    return out


def _show(value: float, spread: float) -> str:
    return f"{value:.2f}±{spread:.2f}"
