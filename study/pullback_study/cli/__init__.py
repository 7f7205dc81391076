"""The command line: one file for each command or group of commands.

These modules import typer and rich alone; what a command needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pullback_study import __version__
from pullback_study.cli import data, reproduce, train, trees
from pullback_study.cli.estimators import list_estimators
from pullback_study.cli.options import SETTINGS
from pullback_study.cli.report import write_report
from pullback_study.cli.runs import show_runs
from pullback_study.cli.sweep import sweep

_ORDER = ("reproduce", "train", "sweep", "runs", "estimators", "report", "data", "parse", "trees")


class _Commands(TyperGroup):
    def list_commands(self, context: Any) -> list[str]:
        """In the order in which people need them."""
        return sorted(super().list_commands(context), key=_ORDER.index)


app = typer.Typer(cls=_Commands, add_completion=False, pretty_exceptions_enable=False, **SETTINGS)
app.add_typer(train.app, name="train")
app.command("sweep", no_args_is_help=True)(sweep)
app.command("runs")(show_runs)
app.command("estimators")(list_estimators)
app.add_typer(reproduce.app, name="reproduce")
app.command("report")(write_report)
app.add_typer(data.app, name="data")
app.command("parse", no_args_is_help=True)(trees.parse)
app.command("trees", no_args_is_help=True)(trees.trees)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pullback-study {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learn through an argmax over structures: train models, reproduce the paper.

    Start with: pullback reproduce table1 --quick
    """
