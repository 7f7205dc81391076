"""Options and settings that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pullback_study.tasks.schema import Option, options

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}
Device = StrEnum("Device", ["auto", "cpu", "cuda"])
_SHARED: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # name: type, default, what typer is told
    "quick": (bool, False, {"help": "A small version: fewer seeds, fewer steps."}),
    "only": (list[str] | None, None, {"metavar": "NAME", "help": "Only this row; repeatable."}),
    "seeds": (int | None, None, {"min": 1, "metavar": "N", "help": "The number of seeds. [default: that of the table]"}),
    "dtype": (StrEnum("Precision", ["float32", "float64"]), "float32", {"help": "The precision."}),
    "vectors": (str | None, None, {"help": "Word vectors of SST and SNLI: a name in vectors/, or a file."}),
    "workers": (int | None, None, {"min": 1, "help": "Worker processes. [default: train in this process]"}),
    "streams": (int | None, None, {"min": 1, "help": "On a GPU: runs at a time in this process, one stream each."}),
    "data": (Path | None, None, {"help": "The folder of the data.  [default: the environment variable PULLBACK_DATA]"}),
    "runs": (Path, Path("runs"), {"help": "The folder of run directories."}),
    "figures": (Path, Path("figures"), {"help": "The folder for figures."}),
    "device": (Device, "auto", {"help": "Where to train; auto uses a GPU if there is one."}),
    "tensorboard": (bool, False, {"help": "Also write TensorBoard event files."}),
    "markdown": (bool, False, {"help": "Print tables as Markdown."}),
    "json": (bool, False, {"help": "Print tables as JSON, with the runs behind each number."}),
}


def lazily(names: Mapping[str, Any], make: Callable[[str], Any]) -> type[TyperGroup]:
    """A group of the commands of these names, each made when it is needed."""

    class Commands(TyperGroup):
        def list_commands(self, context: Any) -> list[str]:
            return list(names)

        def get_command(self, context: Any, name: str) -> Any:
            return make(name) if name in names else None

    return Commands


def single(name: str, function: Callable[..., None], *, needs_arguments: bool) -> Any:
    """A function as a command."""
    app = typer.Typer(pretty_exceptions_enable=False, **{**SETTINGS, "no_args_is_help": False})
    app.command(name, no_args_is_help=needs_arguments)(function)
    return typer.main.get_command(app)


def uses(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with these shared options after its own; it receives them by name."""
    made = []
    for name in names:
        kind, default, about = _SHARED[name]
        made.append(_keyword(name, default, Annotated[kind, typer.Option(f"--{name}", **about)]))  # type: ignore[valid-type]
    return lambda command: with_options(command, after=made)


def with_options(
    command: Callable[..., None], config_type: type | None = None, after: Sequence[inspect.Parameter] = ()
) -> Callable[..., None]:
    """The command with an option for each field of a config before its own, and more after them.

    It receives them by name; choices among these arrive as plain strings.
    """
    before = [_parameter(each) for each in options(config_type).values() if not each.hidden] if config_type else []
    signature = inspect.signature(command, eval_str=True).parameters.values()
    added = {each.name for each in (*before, *after)}
    own = [each.replace(kind=each.KEYWORD_ONLY) for each in signature
           if each.kind is not each.VAR_KEYWORD and each.name not in added]  # fmt: skip
    parameters = [*before, *own, *after]

    def run(**given: Any) -> None:
        command(**{name: str(value) if name in added and isinstance(value, Enum) else value for name, value in given.items()})

    run.__name__ = command.__name__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = (command.__doc__ or "").replace("\\b", "\b")
    return run


def _parameter(field: Option) -> inspect.Parameter:
    """An option of the command line; those that are not given are None."""
    kind: Any = StrEnum(field.name, {value: value for value in field.choices}) if field.choices else field.types[0]
    shown = str(field.default) if field.shown is None else field.shown
    text = f"{field.help}  [default: {shown}]" if shown else field.help
    flags, metavar = field.flags or f"--{field.name.replace('_', '-')}", None
    if field.name == "seed":
        kind, metavar, text = list[kind], "N", f"{field.help} Repeat it to train several.  [default: 0]"
    made = typer.Option(flags, help=text, show_default=False, metavar=metavar)
    return _keyword(field.name, None, Annotated[kind | None, made])


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
