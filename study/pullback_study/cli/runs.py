"""`pullback runs`: the runs of a folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli.options import uses
from pullback_study.cli.terminal import count, err, show, user_errors

if TYPE_CHECKING:
    from pullback.viz import Table
    from pullback_study.runs.store import Stored


@uses("runs")
def show_runs(
    status: Annotated[str | None, typer.Option(help="Only runs that are done, running, stopped, failed or unreadable.")] = None,
    estimator: Annotated[str | None, typer.Option(help="Only runs of this estimator.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="A condition on a field of the config or a metric: clusters=10, test_accuracy>90. Repeatable.",
        ),
    ] = None,
    sort: Annotated[str | None, typer.Option(help="Sort by this field; -field puts the highest first.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The number of runs to show.")] = 50,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write all matching runs as CSV; - prints them.")] = None,
    *,
    runs: Path,
) -> None:
    r"""List the runs, with their state and metrics.

    The validation metrics of an unfinished run are those of its last evaluation.

    \b
    pullback runs --status failed
    pullback runs --where estimator=spigot-ce --where clusters=10 --sort -test_accuracy
    pullback runs --where "learning_rate>=0.001" --csv runs.csv
    """
    from pullback_study.runs.files import write_atomically
    from pullback_study.runs.query import as_csv, select
    from pullback_study.runs.store import STATES, list_runs
    from pullback_study.tasks.schema import nearest

    with user_errors():
        if status is not None and status not in STATES:
            raise ValueError(f"--status {status}: there is no such state; {nearest(status, STATES)}")
        everything = list_runs(runs)
        conditions = [*(where or []), *([f"state={status}"] if status else [])]
        conditions += [f"estimator={estimator}"] if estimator else []
        found = select(everything, conditions, sort)
        if csv is None:
            show(_table(f"{len(found)} of {len(everything)} runs in {runs}/", found, limit))
        elif csv == "-":
            sys.stdout.write(as_csv(found))
        else:
            write_atomically(Path(csv), as_csv(found))
            err.print(f"wrote {count(len(found), 'run')} to {csv}")


def _table(title: str, found: Sequence[Stored], limit: int) -> Table:
    from pullback.viz import Table, visible
    from pullback_study.tasks import TASKS, find_task

    shown = found[:limit]
    metrics: dict[str, Any] = {}
    for name in dict.fromkeys(run.task for run in shown if run.task in TASKS):
        metrics.update({metric.name: metric for metric in find_task(name).metrics if metric.headline})
    present = [name for name in metrics if any(name in run.metrics for run in shown)]
    table = Table(visible(title), ["run", "what", "state", *(_short(metrics[name].label) for name in present)])
    for run in shown:
        numbers = [metrics[name].show(run.metrics.get(name)) for name in present]
        table.rows.append([visible(run.id[:8]), visible(_what(run)), run.state, *numbers])
    for run in shown:
        if run.error is not None:
            table.notes.append(visible(f"{run.id[:8]}: {run.error[:200]}"))
    if len(found) > limit:
        table.notes.append(f"{len(found) - limit} more: --limit {len(found)}, or filter by --where and --status")
    return table


def _what(run: Stored) -> str:
    """The task, the estimator, and the fields that differ from their defaults."""
    from pullback_study.tasks import TASKS, find_task
    from pullback_study.tasks.schema import options

    known = options(find_task(run.task).config_type) if run.task in TASKS else {}
    defaults = {name: each.default for name, each in known.items()}
    given = [
        f"{name}={value}"
        for name, value in run.config.items()
        if name not in ("estimator", "task") and value is not None and (name == "seed" or value != defaults.get(name))
    ]
    older = ["(made by an older version: train it again)"] if run.older else []
    return " ".join([run.task, str(run.config.get("estimator", "")), *given, *older])[:300]


def _short(label: str) -> str:
    return label.replace("Validation", "Valid.")
