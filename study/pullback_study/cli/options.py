"""Options and settings that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": "markdown",
    "context_settings": {"help_option_names": ["-h", "--help"]},
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
    Path | None, typer.Option("--data", help="The folder of the data. [default: the variable PULLBACK_DATA]")
]
FiguresOption = Annotated[Path, typer.Option("--figures", help="The folder for figures.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to train; `auto` takes a GPU if there is one.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A small version: fewer seeds, fewer steps.")]
TensorBoardOption = Annotated[
    bool, typer.Option("--tensorboard/--no-tensorboard", help="Also write TensorBoard event files.")
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print tables as Markdown.")]
