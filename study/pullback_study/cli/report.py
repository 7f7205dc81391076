"""`pullback report`: the whole study as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli.options import uses


@uses("runs", "data")
def write_report(
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("report.html"),
    trees: Annotated[bool, typer.Option("--trees", help="First parse some test sentences with the best run of each "
                                        "estimator on text that has no stored trees; needs the data.")] = False,
    *,
    runs: Path,
    data: Path | None,
) -> None:  # fmt: skip
    r"""Write all results into one HTML file.

    The file has every run, table, figure, claim and tree. `explorer.html` beside it is the explorer of the estimators. Both
    files need only the run directories, open from disk and need no network.

    \b
    pullback report --runs runs --out report.html
    pullback report --trees --data DATA
    """
    from pullback_study.cli.terminal import err, user_errors
    from pullback_study.report.page import write
    from pullback_study.results.choice import Runs

    def say(text: str) -> None:
        err.print(text, highlight=False, markup=False, soft_wrap=True)

    with user_errors():
        if trees:
            from pullback_study.report.trees import keep_trees

            keep_trees(Runs(runs), data, say)
        if not runs.is_dir():
            say(f"{runs}/ does not exist: the page will say what is missing")
        for path in write(out, runs):
            say(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
