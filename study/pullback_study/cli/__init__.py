"""The command line: one file for each command or group of commands."""

from __future__ import annotations

import typer

from pullback_study.cli import data, reproduce, train, trees
from pullback_study.cli.options import SETTINGS
from pullback_study.cli.report import write_report
from pullback_study.cli.runs import list_runs
from pullback_study.cli.sweep import sweep

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, **SETTINGS)
app.add_typer(train.app, name="train")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(data.app, name="data")
app.command("sweep", no_args_is_help=True)(sweep)
app.command("runs")(list_runs)
app.command("report")(write_report)
app.command("parse", no_args_is_help=True)(trees.parse)
app.command("trees", no_args_is_help=True)(trees.trees)


@app.callback()
def main() -> None:
    """Learn through an argmax over structures: the paper's experiments.

    `pullback reproduce table1 --quick` is the place to start.
    """
