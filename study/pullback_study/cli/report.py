"""`pullback report`: the whole study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli.options import DataOption, RunsOption
from pullback_study.terminal import console, user_errors


def write_report(
    runs: RunsOption = Path("runs"),
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("report.html"),
    benchmarks: Annotated[
        list[Path] | None,
        typer.Option(help="A file of `python -m benchmarks --json`; repeat it for several. "
                     "[default: docs/*.json and benchmarks*.json in the folder of runs]"),
    ] = None,
    trees: Annotated[bool, typer.Option("--trees", help="First parse some test sentences with the best run of each "
                                        "estimator on text that has kept no trees; needs the data.")] = False,
    data: DataOption = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page on this machine alone; it refreshes as runs "
                                        "progress.")] = False,
    port: Annotated[int, typer.Option(help="With --serve; 0 takes a free one.", min=0, max=65535)] = 8321,
) -> None:  # fmt: skip
    """Write the tables, figures, claims, trees and an explorer of the estimators into one HTML file.

    It is made from run directories alone, opens from disk, and trains nothing. For example:

    - `pullback report --runs runs --out report.html`
    - `pullback report --trees --data DATA` once models on text are trained
    - `pullback report --serve` during a sweep, and leave the page open
    """
    from pullback_study.report.write import find_benchmarks, write

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    with user_errors():
        files = find_benchmarks(runs, benchmarks)
        if trees:
            from pullback_study.report.parsing import keep_trees
            from pullback_study.status import list_runs

            keep_trees(runs, {run.hash: run for run in list_runs(runs)}, data, say)
        if serve:
            from pullback_study.report.serve import serve as serve_report

            serve_report(runs, files, port=port, say=say)
            return
        if not runs.is_dir():
            say(f"{runs}/ is not there: the page will say what is missing")
        size = write(out, runs, files)
    say(f"wrote {out} ({size / 1e6:.2f} MB)")
