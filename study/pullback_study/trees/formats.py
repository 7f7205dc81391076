"""The formats of trees, by name and by the ending of a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class Format(StrEnum):
    text = "text"
    svg = "svg"
    latex = "latex"
    conllu = "conllu"
    heatmap = "heatmap"


SUFFIXES = {Format.text: ".txt", Format.svg: ".svg", Format.latex: ".tex", Format.conllu: ".conllu", Format.heatmap: ".svg"}


def format_for(given: Format | None, file: Path | None) -> Format:
    """The format that is given, else that of the file's ending, else text; an error if the two contradict each other.

    >>> format_for(None, Path("trees.tex")).value, format_for(Format.svg, None).value, format_for(None, None).value
    ('latex', 'svg', 'text')
    >>> format_for(Format.conllu, Path("trees.svg"))
    Traceback (most recent call last):
    ValueError: --format conllu cannot be written to trees.svg, which is for svg or heatmap; use a name that ends in .conllu
    """
    ending = "" if file is None else file.suffix.lower()
    fitting = [form for form, suffix in SUFFIXES.items() if suffix == ending] + [Format.heatmap] * (ending == ".txt")
    if given is None:
        return fitting[0] if fitting else Format.text
    if fitting and given not in fitting:
        wrong = f"--format {given} cannot be written to {file}, which is for {' or '.join(fitting)}"
        raise ValueError(f"{wrong}; use a name that ends in {SUFFIXES[given]}")
    return given
