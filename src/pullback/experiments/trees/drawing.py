"""Analyses of sentences in every format that `pullback parse` and `pullback trees` write."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from pullback.experiments.trees.shape import depth
from pullback.viz import heatmap_svg, heatmap_text, stacked, tree_conllu, tree_latex, tree_svg, tree_text


class Format(StrEnum):
    text = "text"
    svg = "svg"
    latex = "latex"
    conllu = "conllu"
    heatmap = "heatmap"


class Analysis(Protocol):
    """What a parser says about a sentence: heads with 0 for the root, and mu packed `[n, n]`, head x modifier."""

    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def heads(self) -> tuple[int, ...]: ...
    @property
    def mu(self) -> Any: ...
    @property
    def label(self) -> str: ...


SUFFIXES = {".txt": Format.text, ".svg": Format.svg, ".tex": Format.latex, ".conllu": Format.conllu}
_PREAMBLE = r"% needs \usepackage{tikz-dependency} and \usepackage[T1]{fontenc}"


def as_text(analyses: Sequence[Analysis], form: Format, *, width: int, source: str) -> str:
    """All analyses as one text, which ends with a line feed.

    Args:
        analyses: in the order in which they are written.
        form: SVG drawings are stacked into one.
        width: the columns of the terminal, for drawings with characters.
        source: what made the trees; CoNLL-U names it.
    """
    if form is Format.svg:
        return as_svg(analyses, form) + "\n"
    if form is Format.latex:
        return "\n\n".join([_PREAMBLE, *(tree_latex(each.tokens, each.heads) for each in analyses)]) + "\n"
    if form is Format.conllu:
        return "".join(_conllu(each, number, source) for number, each in enumerate(analyses, 1))
    return "\n".join(_block(each, form, width) for each in analyses)


def as_svg(analyses: Sequence[Analysis], form: Format) -> str:
    """One SVG element with a drawing for each analysis: heat maps for `heatmap`, trees otherwise."""
    if form is Format.heatmap:
        drawings = [heatmap_svg(each.tokens, each.mu) for each in analyses]
    else:
        drawings = [tree_svg(each.tokens, each.heads) for each in analyses]
    return drawings[0] if len(drawings) == 1 else stacked(drawings)


def _block(analysis: Analysis, form: Format, width: int) -> str:
    """A drawing for the terminal, with a line about it."""
    if form is Format.heatmap:
        drawing, about = heatmap_text(analysis.tokens, analysis.mu, width=width), []
    else:
        drawing, about = tree_text(analysis.tokens, analysis.heads, width=width), [f"depth {depth(analysis.heads)}"]
    notes = [analysis.label, *about] if analysis.label else about
    lines = [line.rstrip() for line in drawing.split("\n")]
    return "\n".join([*lines, *([f"({', '.join(notes)})"] if notes else [])]) + "\n"


def _conllu(analysis: Analysis, number: int, source: str) -> str:
    comments = {"sent_id": str(number), "model": source}
    if analysis.label:
        comments["label"] = analysis.label
    return tree_conllu(analysis.tokens, analysis.heads, comments=comments)
