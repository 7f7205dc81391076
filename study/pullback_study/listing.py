"""Runs as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pullback.estimators.config import nearest
from pullback.viz.tables import Table
from pullback_study import query
from pullback_study.status import STATUSES, Listed, list_runs

_FIELDS = (
    "task", "clusters", "seed", "learning_rate", "step_size", "inner_steps", "gamma_scale", "projection", "dtype", "steps",
    "epochs",
)  # fmt: skip
_METRICS = {"accuracy": "accuracy", "v_measure": "V-measure"}


def select(
    root: Path,
    *,
    status: str | None = None,
    estimator: str | None = None,
    where: Sequence[str] = (),
    sort: str | None = None,
    rebuild: bool = False,
) -> tuple[list[Listed], int]:
    """The runs under `root` that match, in the order asked for, and how many there are in all."""
    if status is not None and status not in STATUSES:
        raise ValueError(f"there is no status {status!r}; {nearest(status, list(STATUSES))}")
    runs = list(list_runs(root, rebuild=rebuild))
    names = sorted({str(run.config.get("estimator")) for run in runs})
    if estimator is not None and runs and estimator not in names:
        raise ValueError(f"no run has the estimator {estimator!r}; {nearest(estimator, names)}")
    chosen = [
        run
        for run in runs
        if status in (None, run.status) and estimator in (None, run.config.get("estimator"))
    ]
    chosen.sort(key=lambda run: [str(run.config.get(name)).rjust(20) for name in ("estimator", *_FIELDS)])
    return query.select(chosen, where, sort), len(runs)


def table(
    root: Path,
    *,
    status: str | None = None,
    estimator: str | None = None,
    where: Sequence[str] = (),
    sort: str | None = None,
    limit: int = 50,
    rebuild: bool = False,
) -> Table:
    """The runs under `root` that match, with their status and headline numbers."""
    chosen, total = select(root, status=status, estimator=estimator, where=where, sort=sort, rebuild=rebuild)
    sorted_by = sort.lstrip("-").replace("-", "_") if sort else ""
    more = [sorted_by] if sorted_by and sorted_by.removeprefix("test_") not in _METRICS else []
    columns = ["what", "run", "status", *_METRICS.values(), *more]
    out = Table(f"{len(chosen)} of {total} runs in {root}/", columns)
    newest: dict[str, int] = {}
    for run in chosen:
        newest[run.study] = max(newest.get(run.study, 0), run.version or 0)
    out.rows = [_row(run, more, older=(run.version or 0) < newest[run.study]) for run in chosen[:limit]]
    for run in chosen[:limit]:
        if run.status in ("failed", "unreadable"):
            out.notes.append(f"{run.hash[:8]}: {str(run.result.get('error', 'no reason is noted'))[:200]}")
    if len(chosen) > limit:
        out.notes.append(f"{len(chosen) - limit} more: --limit {len(chosen)}, or filter by --where and --status")
    return out


def _row(run: Listed, more: Sequence[str], older: bool) -> list[str]:
    given = [f"{name}={run.config[name]}" for name in _FIELDS if run.config.get(name) is not None]
    numbers = [_show(run.result.get(f"test_{name}", run.result.get(name))) for name in _METRICS]
    numbers += [_show(query.fields(run).get(name)) for name in more]
    given += [f"(an older version of the study: {run.version})"] if older else []
    return [f"{run.config.get('estimator', run.study)} {' '.join(given)}", run.hash[:8], run.status, *numbers]


def _show(value: object) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
