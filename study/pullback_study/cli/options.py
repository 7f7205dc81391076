"""Options and settings that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pullback_study.tasks.schema import Option, options

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Scale(StrEnum):
    paper = "paper"
    example = "example"
    both = "both"


class Precision(StrEnum):
    float32 = "float32"
    float64 = "float64"


RunsOption = Annotated[Path, typer.Option("--runs", help="The folder of run directories.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="The folder of the data.  [default: the variable PULLBACK_DATA]")
]
FiguresOption = Annotated[Path, typer.Option("--figures", help="The folder for figures.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to train; auto takes a GPU if there is one.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small version: fewer seeds, fewer steps.")]
TensorBoardOption = Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard event files.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]


def with_options(command: Callable[..., None], config_type: type) -> Callable[..., None]:
    """The command with an option for each field of a config, which it receives by name in its last argument, `**fields`."""
    fields = options(config_type)
    parameters = [_parameter(each) for each in fields.values() if not each.hidden]
    signature = inspect.signature(command, eval_str=True).parameters.values()
    own = [each.replace(kind=each.KEYWORD_ONLY) for each in signature if each.kind is not each.VAR_KEYWORD]

    def run(**given: Any) -> None:
        plain = {name: value.value if isinstance(value, Enum) and name in fields else value for name, value in given.items()}
        command(**plain)

    run.__signature__ = inspect.Signature([*parameters, *own])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*parameters, *own)}
    run.__doc__ = command.__doc__
    return run


def _parameter(field: Option) -> inspect.Parameter:
    """An option of the command line; those that are not given are None."""
    kind = StrEnum(field.name, {value: value for value in field.choices}) if field.choices else field.types[0]
    shown = str(field.default) if field.shown is None else field.shown
    text = f"{field.help}  [default: {shown}]" if shown else field.help
    annotation: Any = list[kind] if field.name == "seed" else kind  # type: ignore[valid-type]
    if field.name == "seed":
        text = f"{field.help} Repeat it to train several.  [default: 0]"
    names = [field.flags or f"--{field.name.replace('_', '-')}"]
    made = typer.Option(*names, help=text, show_default=False)
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation | None, made]
    )
