"""`pullback estimators`, `pullback runs` and `pullback report`: what there is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_study.cli.options import uses
from pullback_study.cli.terminal import count, err, show, user_errors
from pullback_study.tasks import find_task, known_task, names_of_estimators

if TYPE_CHECKING:
    from pullback.viz import Table
    from pullback_study.runs.store import Stored


def list_estimators(
    task: Annotated[str, typer.Argument(help="A task: baselines and defaults are its own.")] = "synthetic",
) -> None:
    """List the estimators and baselines of a task.

    \b
    pullback estimators
    pullback estimators sst
    """  # noqa: D301
    from pullback.viz import Table

    with user_errors():
        found = find_task(task)
        rows = []
        for method in found.methods.values():
            taken = "--step-size " * ("step_size" in method.accepted) + "--inner-steps" * ("steps" in method.accepted)
            rows.append([method.name, method.label, method.kind, ", ".join(method.aliases), taken.strip()])
    notes = ["Any of the names works: with --estimator, in sweep files, and in `pullback runs --where`."]
    columns = ["--estimator", "in tables", "kind", "also called", "options"]
    show(Table(f"Estimators of {found.name}", columns, rows, notes))


@uses("runs")
def show_runs(
    status: Annotated[str | None, typer.Option(help="Only runs that are done, running, stopped, failed or unreadable.")] = None,
    estimator: Annotated[str | None, typer.Option(help="Only runs of this estimator.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="On a field or a metric: clusters=10, test_accuracy>90. Repeatable."),
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
    from pullback_study.runs.store import STATES, as_csv, list_runs, select
    from pullback_study.tasks.schema import check_known

    with user_errors("list runs" if csv is None else f"write the list of runs to {csv}"):
        if status is not None:
            check_known(f"--status {status}: there is no such state", status, STATES)
        if not runs.exists():
            raise ValueError(f"the folder {runs}/ does not exist; train something, or choose another folder (--runs)")
        everything = list_runs(runs)
        if estimator is not None:
            names = {*names_of_estimators(), *(str(run.config.get("estimator")) for run in everything)}
            check_known(f"--estimator {estimator}: there is no such estimator", estimator, names)
        given = {"state": status, "estimator": estimator}
        found = select(everything, [*(where or []), *(f"{name}={value}" for name, value in given.items() if value)], sort)
        if csv is None:
            show(_table(f"{len(found)} of {count(len(everything), 'run')} in {runs}/", found, limit))
        elif csv == "-":
            sys.stdout.write(as_csv(found))
        else:
            write_atomically(Path(csv), as_csv(found))
            err.print(f"wrote {count(len(found), 'run')} to {csv}")


def _table(title: str, found: Sequence[Stored], limit: int) -> Table:
    from pullback.viz import Table, visible

    shown = found[:limit]
    metrics: dict[str, Any] = {}
    for task in filter(None, map(known_task, dict.fromkeys(run.task for run in shown))):
        metrics.update({metric.name: metric for metric in task.metrics if metric.headline})
    present = [name for name in metrics if any(name in run.metrics for run in shown)]
    columns = ["run", "what", "state", *(metrics[name].label.replace("Validation", "Valid.") for name in present)]
    numbers = [[metrics[name].show(run.metrics.get(name)) for name in present] for run in shown]
    rows = [[visible(run.id[:8]), visible(_what(run)), run.state, *each] for run, each in zip(shown, numbers, strict=True)]
    notes = [visible(f"{run.id[:8]}: {run.error[:200]}") for run in shown if run.error is not None]
    notes += [f"{len(found) - limit} more: --limit {len(found)}, or filter by --where and --status"] * (len(found) > limit)
    return Table(visible(title), columns, rows, notes)


def _what(run: Stored) -> str:
    """The task, the estimator, and the fields that differ from their defaults."""
    from pullback_study.tasks.schema import options

    task, estimator = known_task(run.task), run.config.get("estimator", "")
    known = options(task.config_type) if task else {}
    usual = {name: each.default for name, each in known.items()} | {"estimator": estimator, "seed": None}
    given = [f"{name}={value}" for name, value in run.config.items() if value not in (None, usual.get(name))]
    older = ["(made by an older version: train it again)"] * run.older
    return " ".join([run.task, str(estimator), *given, *older])[:300]


@uses("runs")
def write_report(
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("report.html"), *, runs: Path
) -> None:
    """Write all results into one HTML file.

    The file has every run, table, figure and claim. `explorer.html` beside it is the explorer of the estimators. Both files
    need only the run directories, open from disk and need no network.

    Example: pullback report --runs runs --out report.html
    """
    from pullback_study.report.page import write

    with user_errors(f"write the report to {out}"):
        if not runs.is_dir():
            err.print(f"{runs}/ does not exist: the page will say what is missing")
        for path in write(out, runs):
            err.print(f"wrote {path}" + (f" ({path.stat().st_size / 1e6:.2f} MB)" if path.is_file() else ""))
