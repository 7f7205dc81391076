"""`pullback runs`: what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pullback.cli.options import RunsOption
from pullback.experiments.terminal import console, user_errors


def list_runs(
    runs: RunsOption = Path("runs"),
    status: Annotated[str | None, typer.Option(help="Only these: done, running, failed, killed.")] = None,
    estimator: Annotated[str | None, typer.Option(help="Only this estimator's.")] = None,
    limit: Annotated[int, typer.Option(help="How many to show.")] = 50,
) -> None:
    """List the runs, with their status and headline numbers.

    For example: `pullback runs --status done --estimator spigot-ce`
    """
    from pullback.experiments import listing

    with user_errors():
        console.print(listing.table(runs, status=status, estimator=estimator, limit=limit).rich())
