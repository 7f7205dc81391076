"""Runs as a table for people."""

from __future__ import annotations

from pathlib import Path

from pullback.estimators.config import nearest
from pullback.experiments.status import STATUSES, Listed, list_runs
from pullback.viz.tables import Table

_FIELDS = ("clusters", "seed", "learning_rate", "step_size", "inner_steps", "gamma_scale", "dtype", "steps")


def table(root: Path, *, status: str | None = None, estimator: str | None = None, limit: int = 50) -> Table:
    """The runs under `root` that match, with their status and headline numbers."""
    if status is not None and status not in STATUSES:
        raise ValueError(f"there is no status {status!r}; {nearest(status, list(STATUSES))}")
    runs = list(list_runs(root))
    names = sorted({str(run.config.get("estimator")) for run in runs})
    if estimator is not None and runs and estimator not in names:
        raise ValueError(f"no run has the estimator {estimator!r}; {nearest(estimator, names)}")
    chosen = [
        run
        for run in runs
        if status in (None, run.status) and estimator in (None, run.config.get("estimator"))
    ]
    chosen.sort(key=lambda run: [str(run.config.get(name)).rjust(20) for name in ("estimator", *_FIELDS)])
    out = Table(f"{len(chosen)} of {len(runs)} runs in {root}/", ["what", "run", "status", "accuracy", "V-measure"])
    out.rows = [_row(run) for run in chosen[:limit]]
    if len(chosen) > limit:
        out.notes.append(f"{len(chosen) - limit} more: --limit {len(chosen)}, or filter by --status and --estimator")
    return out


def _row(run: Listed) -> list[str]:
    given = [f"{name}={run.config[name]}" for name in _FIELDS if run.config.get(name) is not None]
    accuracy = run.result.get("test_accuracy", run.result.get("accuracy"))
    v_measure = run.result.get("test_v_measure", run.result.get("v_measure"))
    numbers = ["" if value is None else f"{value:.2f}" for value in (accuracy, v_measure)]
    return [f"{run.config.get('estimator', run.study)} {' '.join(given)}", run.hash[:8], run.status, *numbers]
