"""The command line: one file for each command or group of commands.

A command's module is imported when the command runs, or for the list of all of them, and imports typer and rich alone; the rest
follows when it works. So `--help` is quick.
"""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pullback_study import __version__
from pullback_study.cli.options import SETTINGS

_COMMANDS = {
    "reproduce": "reproduce:app",
    "train": "train:app",
    "sweep": "sweep:sweep",
    "runs": "runs:show_runs",
    "estimators": "estimators:list_estimators",
    "report": "report:write_report",
    "data": "data:app",
    "parse": "trees:parse",
    "trees": "trees:trees",
}
"""In the order in which people need them: a module here, and a function or a group of commands in it."""
_NEEDS_ARGUMENTS = ("sweep", "parse", "trees")


class _Commands(TyperGroup):
    """The commands, each made when it is needed."""

    def list_commands(self, context: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: Any, name: str) -> Any:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].partition(":")
        found = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            single = typer.Typer(**{**SETTINGS, "no_args_is_help": False})
            single.command(name, no_args_is_help=name in _NEEDS_ARGUMENTS)(found)
            found = single
        return typer.main.get_command(found)


app = typer.Typer(cls=_Commands, pretty_exceptions_enable=False, **SETTINGS)


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
