"""Options and settings that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pullback_study.tasks.schema import Option, options

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}
Device = StrEnum("Device", ["auto", "cpu", "cuda"])

RunsOption = Annotated[Path, typer.Option("--runs", help="The folder of run directories.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="The folder of the data.  [default: the environment variable PULLBACK_DATA]")
]
FiguresOption = Annotated[Path, typer.Option("--figures", help="The folder for figures.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small version: fewer seeds, fewer steps.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to train; auto uses a GPU if there is one.")]
TensorBoardOption = Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard event files.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]
_SHARED: dict[str, tuple[Any, Any]] = {  # name: annotation, default
    "quick": (QuickOption, False),
    "only": (Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this row; repeatable.")], None),
    "seeds": (
        Annotated[int | None, typer.Option(min=1, metavar="N", help="Seeds 0 to N - 1. [default: the paper's number]")], None
    ),
    "dtype": (StrEnum("Precision", ["float32", "float64"]), "float32"),
    "vectors": (Annotated[str | None, typer.Option(help="Word vectors of SST and SNLI: a name in vectors/, or a file.")], None),
    "workers": (Annotated[int | None, typer.Option(help="Worker processes. [default: train in this process]")], None),
    "data": (DataOption, None),
    "runs": (RunsOption, Path("runs")),
    "figures": (FiguresOption, Path("figures")),
    "device": (DeviceOption, "auto"),
    "tensorboard": (TensorBoardOption, False),
    "markdown": (MarkdownOption, False),
    "as_json": (Annotated[bool, typer.Option("--json", help="Print tables as JSON, with the runs behind each number.")], False),
}  # fmt: skip


def uses(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with these shared options after its own; it receives them by name."""
    made = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_SHARED[name][1], annotation=_SHARED[name][0])
            for name in names]  # fmt: skip
    return lambda command: with_parameters(command, after=made)


def with_options(command: Callable[..., None], config_type: type) -> Callable[..., None]:
    """A command with an option for each field of a config before its own; it receives them by name."""
    return with_parameters(command, before=[_parameter(each) for each in options(config_type).values() if not each.hidden])


def with_parameters(
    command: Callable[..., None], before: Sequence[inspect.Parameter] = (), after: Sequence[inspect.Parameter] = ()
) -> Callable[..., None]:
    """The command with more options, which it receives in its last argument, `**given`; choices arrive as plain strings."""
    signature = inspect.signature(command, eval_str=True).parameters.values()
    added = {each.name for each in (*before, *after)}
    own = [each.replace(kind=each.KEYWORD_ONLY) for each in signature
           if each.kind is not each.VAR_KEYWORD and each.name not in added]  # fmt: skip
    parameters = [*before, *own, *after]

    def run(**given: Any) -> None:
        command(**{name: value.value if isinstance(value, Enum) else value for name, value in given.items()})

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = (command.__doc__ or "").replace("\\b", "\b")
    return run


def _parameter(field: Option) -> inspect.Parameter:
    """An option of the command line; those that are not given are None."""
    kind: Any = StrEnum(field.name, {value: value for value in field.choices}) if field.choices else field.types[0]
    shown = str(field.default) if field.shown is None else field.shown
    text = f"{field.help}  [default: {shown}]" if shown else field.help
    annotation, metavar = kind, None
    if field.name == "seed":
        annotation, metavar, text = list[kind], "N", f"{field.help} Repeat it to train several.  [default: 0]"
    made = typer.Option(
        field.flags or f"--{field.name.replace('_', '-')}", help=text, show_default=False, metavar=metavar
    )
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation | None, made]
    )
