"""The synthetic study's two figures as data: learning curves, and the impact of multiple updates."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback_study.report.numbers import UNREADABLE, band, command, number, progress, thinned
from pullback_study.report.synthetic import MEASURES
from pullback_study.runs import Run
from pullback_study.status import Listed
from pullback_study.synthetic.figures import CURVES
from pullback_study.synthetic.methods import METHODS, ROWS
from pullback_study.synthetic.plans import (
    FULL,
    QUICK,
    SETTINGS,
    STEPPED,
    Cell,
    Scope,
    choose,
    steps_cell,
    table_cell,
)
from pullback_study.synthetic.study import Synthetic

_SCOPES: tuple[tuple[str, Scope, tuple[str, ...]], ...] = (("", FULL, ()), (", quick runs", QUICK, ("--quick",)))


def curves(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """Validation accuracy and V-measure against steps, at the paper's best settings; unfinished runs too."""
    found = []
    for suffix, scope, words in _SCOPES:
        for clusters in reversed(SETTINGS):
            only = [word for name in CURVES for word in ("--only", name)]
            making = ("curves", *words) if clusters == 10 else ("table1", *words, *only)
            figure: dict[str, Any] = {
                "name": f"curves-{clusters}{'-quick' if words else ''}", "title": f"{clusters} clusters{suffix}",
                "x": "Steps", "command": command("reproduce", *making, root=root),
                "note": "The paper's best settings; the lines are medians.",
                "panels": [{"name": name, "label": f"Validation: {label} (%)"} for name, label in MEASURES.items()],
                "series": [],
            }  # fmt: skip
            for name in ROWS:
                cell = table_cell(name, clusters, grid=False, scope=scope)
                figure["series"].append(_learning(cell, root, listed))
            if scope is FULL or _drawn(figure):
                found.append(figure)
    return found


def steps(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """Test accuracy and V-measure against the number of inner steps, the best step size at each point."""
    found = []
    for suffix, scope, words in _SCOPES:
        figure: dict[str, Any] = {
            "name": f"steps{'-quick' if words else ''}", "title": f"10 clusters{suffix}", "x": "Inner steps",
            "command": command("reproduce", "steps", *words, root=root),
            "note": "The paper's learning rates, and the best step size at each point; the lines are medians.",
            "panels": [{"name": name, "label": f"Test: {label} (%)"} for name, label in MEASURES.items()],
            "series": [_stepped(name, scope, root, listed) for name in STEPPED],
        }  # fmt: skip
        if scope is FULL or _drawn(figure):
            found.append(figure)
    return found


def _drawn(figure: dict[str, Any]) -> bool:
    return any(series["x"] for series in figure["series"])


def _learning(cell: Cell, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    series = _series(cell.estimator, cell.configs, root, listed)
    series["shown"] = cell.estimator in CURVES
    try:
        chosen = choose(cell, root)
        runs = chosen.runs if chosen else ()
        if not runs and len(cell.candidates) == 1:
            runs = tuple(Synthetic().run(config, root) for config in cell.candidates[0])
        series |= _over_seeds(runs)
    except UNREADABLE as error:
        series["problem"] = f"a run cannot be read: {error!r}"
    return series


def _over_seeds(runs: Sequence[Run]) -> dict[str, Any]:
    """Median, lowest and highest over the seeds that have got as far as each evaluation."""
    histories = [{number(row["step"]): row for row in run.metrics} for run in runs]
    reached = sorted({step for history in histories for step in history})
    x = thinned(reached)
    lines: dict[str, Any] = {}
    for measure in MEASURES:
        points = [[history[step].get(measure) for history in histories if step in history] for step in x]
        lines[measure] = band(points, statistics.median)
    return {"x": x, "lines": lines, "thinned": len(reached) - len(x)}


def _stepped(name: str, scope: Scope, root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    cells = {k: steps_cell(name, k, scope=scope) for k in scope.inner_steps}
    series = _series(name, [config for cell in cells.values() for config in cell.configs], root, listed)
    series["shown"] = True
    try:
        found = {k: chosen for k, cell in cells.items() if (chosen := choose(cell, root)) is not None}
        series["x"] = list(found)
        series["sizes"] = [chosen.config.step_size for chosen in found.values()]
        for measure in MEASURES:
            values = [chosen.values(f"test_{measure}") for chosen in found.values()]
            series["lines"][measure] = band(values, statistics.median)
    except UNREADABLE as error:
        series["problem"] = f"a run cannot be read: {error!r}"
    return series


def _series(name: str, configs: Sequence[Any], root: Path, listed: Mapping[str, Listed]) -> dict[str, Any]:
    runs = progress([Synthetic().run(config, root).hash for config in configs], listed)
    return {"name": name, "label": METHODS[name].row, "runs": runs, "x": [], "lines": {}}
