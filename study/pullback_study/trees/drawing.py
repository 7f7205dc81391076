"""Analyses of sentences in every format, by name and by the ending of a file.

An analysis has `tokens`, `heads` (0 the root), `mu` (what the decoder sees, `[n, n]`, head x modifier) and a `label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

Format = StrEnum("Format", ["text", "svg", "latex", "conllu", "heatmap"])
_SUFFIXES = {Format.text: ".txt", Format.svg: ".svg", Format.latex: ".tex", Format.conllu: ".conllu", Format.heatmap: ".svg"}
_PREAMBLE = r"% needs \usepackage{tikz-dependency} and \usepackage[T1]{fontenc}"


def format_for(given: Format | None, file: Path | None) -> Format:
    """The format that is given, else that of the file's ending, else text; an error if the two contradict each other.

    An ending of no format is an error, too, unless a format is given.

    >>> format_for(Format.conllu, Path("trees.svg"))
    Traceback (most recent call last):
    ValueError: --format conllu cannot be written to trees.svg, which is for svg or heatmap; use a name that ends in .conllu
    """
    ending = "" if file is None else file.suffix.lower()
    fitting = [form for form, suffix in _SUFFIXES.items() if suffix == ending] + [Format.heatmap] * (ending == ".txt")
    if given is None:
        if ending and not fitting:
            known = ", ".join(dict.fromkeys(_SUFFIXES.values()))
            raise ValueError(f"--out {file}: no format has the ending {ending}; use one of {known}, or give --format")
        return fitting[0] if fitting else Format.text
    if fitting and given not in fitting:
        wrong = f"--format {given} cannot be written to {file}, which is for {' or '.join(fitting)}"
        raise ValueError(f"{wrong}; use a name that ends in {_SUFFIXES[given]}")
    return given


def drawn(analyses: Sequence[Any], form: Format, file: Path | None = None, *, width: int, source: str) -> str:
    """All analyses as one text, which ends with a line feed.

    SVG drawings are stacked into one; heat maps are shaded characters, or a drawing for a file that ends in .svg. `width` is
    the terminal's, and CoNLL-U names the model, `source`.
    """
    from pullback import viz
    from pullback_study.trees.measures import depth

    heat = form is Format.heatmap
    if form is Format.svg or (heat and file is not None and file.suffix.lower() == ".svg"):
        drawings = [viz.heatmap_svg(a.tokens, a.mu) if heat else viz.tree_svg(a.tokens, a.heads) for a in analyses]
        return (drawings[0] if len(drawings) == 1 else viz.stacked(drawings)) + "\n"
    if form is Format.latex:
        return "\n\n".join([_PREAMBLE, *(viz.tree_latex(each.tokens, each.heads) for each in analyses)]) + "\n"
    blocks = []
    for number, each in enumerate(analyses, 1):
        if form is Format.conllu:
            about = {"sent_id": str(number), "model": source, **({"label": each.label} if each.label else {})}
            blocks.append(viz.tree_conllu(each.tokens, each.heads, comments=about))
            continue
        draw = viz.heatmap_text if heat else viz.tree_text
        lines = [line.rstrip() for line in draw(each.tokens, each.mu if heat else each.heads, width=width).split("\n")]
        notes = [note for note in (each.label, "" if heat else f"depth {depth(each.heads)}") if note]
        blocks.append("\n".join([*lines, *([f"({', '.join(notes)})"] if notes else [])]) + "\n")
    return ("" if form is Format.conllu else "\n").join(blocks)
