"""`pullback estimators`: the names that --estimator takes."""

from __future__ import annotations

from typing import Annotated

import typer

from pullback_study.cli.terminal import show, user_errors
from pullback_study.tasks import find_task


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
        table = Table(f"Estimators of {found.name}", ["--estimator", "in tables", "kind", "also called", "options"])
        for method in found.methods.values():
            taken = [field for argument, field in _FIELDS.items() if argument in method.accepted]
            table.rows.append([method.name, method.label, method.kind, ", ".join(method.aliases), " ".join(taken)])
        table.notes.append("Any of the names works: with --estimator, in sweep files, and in `pullback runs --where`.")
    show(table)


_FIELDS = {"step_size": "--step-size", "steps": "--inner-steps"}
