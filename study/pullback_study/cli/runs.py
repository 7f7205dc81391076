"""`pullback runs`: what is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli.options import RunsOption
from pullback_study.terminal import console, user_errors


def list_runs(
    runs: RunsOption = Path("runs"),
    status: Annotated[str | None, typer.Option(help="Only these: done, running, failed, killed, unreadable.")] = None,
    estimator: Annotated[str | None, typer.Option(help="Only this estimator's.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="A condition on a field of the config or the results: `clusters=10`, `test_accuracy>90`. "
                     "Repeat it for several."),
    ] = None,
    sort: Annotated[str | None, typer.Option(help="Order by this field; `-field` for the highest first.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 50,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write all that match as CSV; `-` to print it.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read every directory again, not the index.")] = False,
) -> None:  # fmt: skip
    """List the runs, with their status and headline numbers.

    For example:

    - `pullback runs --status failed`
    - `pullback runs --where estimator=spigot-ce --where clusters=10 --sort -test_accuracy`
    - `pullback runs --where "learning_rate>=0.001" --csv runs.csv`
    """
    from pullback_study import listing, query
    from pullback_study.runs import write_atomically

    with user_errors():
        if csv is None:
            shown = listing.table(
                runs, status=status, estimator=estimator, where=where or [], sort=sort, limit=limit, rebuild=rebuild
            )
            console.print(shown.rich())
            return
        chosen, _ = listing.select(
            runs, status=status, estimator=estimator, where=where or [], sort=sort, rebuild=rebuild
        )
    if csv == "-":
        sys.stdout.write(query.as_csv(chosen))
    else:
        write_atomically(Path(csv), query.as_csv(chosen))
        console.print(f"wrote {len(chosen)} runs to {csv}", highlight=False, soft_wrap=True)
