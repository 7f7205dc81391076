"""The command line: one file for each command or group of commands.

A command's module is imported when the command runs, or for the list of all of them, and imports typer and rich alone; the rest
follows when it works. So `--help` is quick.
"""

from __future__ import annotations

import pkgutil
from typing import Annotated, Any

import typer

from pullback_study import __version__
from pullback_study.cli.options import SETTINGS, lazily, single

_COMMANDS = {
    "reproduce": "reproduce:app",
    "train": "train:app",
    "sweep": "train:sweep",
    "runs": "runs:show_runs",
    "estimators": "runs:list_estimators",
    "report": "runs:write_report",
    "data": "data:app",
    "parse": "trees:parse",
    "trees": "trees:trees",
}
"""In the order in which people need them: a module here, and a function or a group of commands in it."""
_NEEDS_ARGUMENTS = ("sweep", "parse", "trees")


def _load(name: str) -> Any:
    found = pkgutil.resolve_name(f"{__name__}.{_COMMANDS[name]}")
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    return single(name, found, needs_arguments=name in _NEEDS_ARGUMENTS)


app = typer.Typer(cls=lazily(_COMMANDS, _load), pretty_exceptions_enable=False, **SETTINGS)


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
