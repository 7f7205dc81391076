"""The formats of trees by name, and by the name of the file they go to."""

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
    """The format that was asked for, else the one that the file's name ends in, else text.

    >>> format_for(None, Path("trees.tex")).value, format_for(Format.svg, None).value, format_for(None, None).value
    ('latex', 'svg', 'text')
    """
    if given is not None or file is None:
        return given or Format.text
    known = {suffix: form for form, suffix in SUFFIXES.items() if form is not Format.heatmap}
    return known.get(file.suffix.lower(), Format.text)
