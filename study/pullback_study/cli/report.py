"""`pullback report`: the whole study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli.options import uses


@uses("runs")
def write_report(
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("report.html"), *, runs: Path
) -> None:
    """Write all results into one HTML file.

    The file has every run, table, figure and claim. `explorer.html` beside it is the explorer of the estimators. Both files
    need only the run directories, open from disk and need no network.

    Example: pullback report --runs runs --out report.html
    """
    from pullback_study.cli.terminal import err, user_errors
    from pullback_study.report.page import write

    with user_errors():
        if not runs.is_dir():
            err.print(f"{runs}/ does not exist: the page will say what is missing")
        for path in write(out, runs):
            err.print(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
