"""Analyses of sentences in every format, by name and by the ending of a file.

An analysis has `tokens`, `heads` (0 the root), `mu` (what the decoder sees, `[n, n]`, head x modifier) and a `label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any


class Format(StrEnum):
    text = "text"
    svg = "svg"
    latex = "latex"
    conllu = "conllu"
    heatmap = "heatmap"


SUFFIXES = {Format.text: ".txt", Format.svg: ".svg", Format.latex: ".tex", Format.conllu: ".conllu", Format.heatmap: ".svg"}
_PREAMBLE = r"% needs \usepackage{tikz-dependency} and \usepackage[T1]{fontenc}"


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


def drawn(analyses: Sequence[Any], form: Format, file: Path | None = None, *, width: int, source: str) -> str:
    """All analyses as one text, which ends with a line feed.

    SVG drawings are stacked into one; heat maps are shaded characters, or a drawing for a file that ends in .svg. `width` is
    the terminal's, and CoNLL-U names the model, `source`.
    """
    from pullback.viz import heatmap_svg, stacked, tree_conllu, tree_latex, tree_svg

    heat = form is Format.heatmap
    if form is Format.svg or (heat and file is not None and file.suffix.lower() == ".svg"):
        drawings = [heatmap_svg(each.tokens, each.mu) if heat else tree_svg(each.tokens, each.heads) for each in analyses]
        return (drawings[0] if len(drawings) == 1 else stacked(drawings)) + "\n"
    if form is Format.latex:
        return "\n\n".join([_PREAMBLE, *(tree_latex(each.tokens, each.heads) for each in analyses)]) + "\n"
    if form is Format.conllu:
        about = [{"sent_id": str(i), "model": source, "label": each.label} for i, each in enumerate(analyses, 1)]
        comments = [{name: value for name, value in each.items() if value} for each in about]
        return "".join(tree_conllu(a.tokens, a.heads, comments=c) for a, c in zip(analyses, comments, strict=True))
    return "\n".join(_block(each, heat, width) for each in analyses)


def _block(analysis: Any, heat: bool, width: int) -> str:
    """A drawing for the terminal, with a line about it."""
    from pullback.viz import heatmap_text, tree_text
    from pullback_study.trees.shape import depth

    if heat:
        drawing, notes = heatmap_text(analysis.tokens, analysis.mu, width=width), [analysis.label]
    else:
        notes = [analysis.label, f"depth {depth(analysis.heads)}"]
        drawing = tree_text(analysis.tokens, analysis.heads, width=width)
    lines = [line.rstrip() for line in drawing.split("\n")]
    about = ", ".join(note for note in notes if note)
    return "\n".join([*lines, *([f"({about})"] if about else [])]) + "\n"
