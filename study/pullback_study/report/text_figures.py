"""Figures of the text study as data: learning curves over the epochs, and the number of inner steps on SST."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback_study.report.numbers import UNREADABLE, band, command, number, progress
from pullback_study.runs import Run
from pullback_study.status import Listed
from pullback_study.text.methods import METHODS, ROWS
from pullback_study.text.plans import FULL, INNER_STEPS, STEPPED, Cell, choose, table_cell, with_steps
from pullback_study.text.tasks import find_task

_PANELS = {"accuracy": "Accuracy (%)", "depth": "Depth of the trees"}
_BEST = "The paper's best settings"


def curves(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """Validation accuracy and depth against epochs: SST at the search's settings, SNLI at the paper's."""
    found = []
    for task, scope in FULL.items():
        search = task == "sst"
        words = ("table2", "--task", task, *(["--search"] * search))
        figure = _figure(f"curves-{task}", find_task(task).title, "Epochs", "Validation", words, root)
        figure["note"] = f"{'Learning rates of the search' if search else _BEST}; the lines are means."
        cells = [table_cell(name, scope, search=search) for name in ROWS]
        figure["series"] = [_learning(cell, root, listed) for cell in cells]
        found.append(figure)
    return [figure for figure in found if _drawn(figure)]


def steps(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """Test accuracy and depth on SST with 1, 2 and 5 inner steps, at the setting that the search chose."""
    figure = _figure("steps-sst", "SST", "Inner steps", "Test", ("steps", "--task", "sst"), root)
    figure["note"] = "Learning rates of the search with one step; the lines are means."
    figure["series"] = [_stepped(table_cell(name, FULL["sst"], search=True), root, listed) for name in STEPPED]
    return [figure] if _drawn(figure) else []


def _figure(name: str, title: str, x: str, split: str, words: Sequence[str], root: Path) -> dict[str, Any]:
    panels = [{"name": measure, "label": f"{split}: {label}"} for measure, label in _PANELS.items()]
    return {"name": name, "title": title, "x": x, "command": command("reproduce", *words, root=root), "panels": panels}


def _drawn(figure: dict[str, Any]) -> bool:
    return any(line["x"] for line in figure["series"])


def _learning(cell: Cell, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    """Mean, lowest and highest over the seeds that have got as far as each epoch."""
    runs: tuple[Run, ...] = ()
    found: dict[str, Any] = {}
    try:
        if (chosen := choose(cell, root)) is not None:
            runs = chosen.runs
            histories = [{number(row["epoch"]): row for row in run.metrics} for run in runs]
            x = sorted({epoch for history in histories for epoch in history})
            for measure in _PANELS:
                points = [[history[epoch].get(measure) for history in histories if epoch in history] for epoch in x]
                found.setdefault("lines", {})[measure] = band(points, statistics.fmean)
            found["x"] = x
    except UNREADABLE as error:
        found = {"problem": f"a run cannot be read: {error!r}"}
    return _series(cell.estimator, runs, listed) | found


def _stepped(cell: Cell, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    runs: list[Run] = []
    found: dict[str, Any] = {}
    try:
        if (chosen := choose(cell, root)) is not None:
            rows = {k: with_steps(chosen, k, root) for k in INNER_STEPS}
            runs = [run for row in rows.values() for run in row.runs]
            done = {k: row for k, row in rows.items() if any(run.done for run in row.runs)}
            lines = {m: band([row.values(f"test_{m}") for row in done.values()], statistics.fmean) for m in _PANELS}
            found = {"x": list(done), "lines": lines}
    except UNREADABLE as error:
        found = {"problem": f"a run cannot be read: {error!r}"}
    return _series(cell.estimator, runs, listed) | found


def _series(name: str, runs: Sequence[Run], listed: Mapping[str, Listed]) -> dict[str, Any]:
    counted = progress([run.hash for run in runs], listed)
    return {"name": name, "label": METHODS[name].row, "runs": counted, "x": [], "lines": {}, "shown": True}
