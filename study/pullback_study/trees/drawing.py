"""Analyses of sentences in every format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from pullback.viz import heatmap_svg, heatmap_text, stacked, tree_conllu, tree_latex, tree_svg, tree_text
from pullback_study.runs import write_atomically
from pullback_study.trees.formats import SUFFIXES, Format
from pullback_study.trees.paper import printed_for
from pullback_study.trees.shape import depth

_PREAMBLE = r"% needs \usepackage{tikz-dependency} and \usepackage[T1]{fontenc}"


class Analysis(Protocol):
    """The output of a parser for one sentence: heads with 0 for the root, and mu packed `[n, n]`, head x modifier."""

    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def heads(self) -> tuple[int, ...]: ...
    @property
    def mu(self) -> Any: ...
    @property
    def label(self) -> str: ...


def with_the_papers(analyses: Sequence[Analysis], estimator: str) -> list[Analysis]:
    """The analyses of the paper's sentences, each followed by the tree that the paper prints for the estimator."""
    theirs = {tree.sentence: tree for tree in printed_for(estimator)}
    pairs = [[each, theirs[i]] if i in theirs else [each] for i, each in enumerate(analyses)]
    return [each for pair in pairs for each in pair]


def as_text(analyses: Sequence[Analysis], form: Format, *, width: int, source: str) -> str:
    """All analyses as one text, which ends with a line feed.

    Args:
        analyses: in order.
        form: SVG drawings are stacked into one; heat maps are shaded characters.
        width: the columns of the terminal, for drawings with characters.
        source: the model, which CoNLL-U names.
    """
    if form is Format.svg:
        return as_svg(analyses, form)
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
    return (drawings[0] if len(drawings) == 1 else stacked(drawings)) + "\n"


def write_file(analyses: Sequence[Analysis], form: Format, path: Path, *, width: int, source: str) -> None:
    """All analyses into one file; a heat map is a drawing if the file's name ends in .svg, and characters otherwise."""
    drawn = form is Format.heatmap and path.suffix.lower() == ".svg"
    write_atomically(path, as_svg(analyses, form) if drawn else as_text(analyses, form, width=width, source=source))


def write_folder(analyses: Sequence[Analysis], form: Format, folder: Path, *, width: int, source: str) -> list[Path]:
    """All analyses into a folder: a file for each drawing, else one file for all."""
    if SUFFIXES[form] != ".svg":
        paths = [folder / f"trees{SUFFIXES[form]}"]
        write_file(analyses, form, paths[0], width=width, source=source)
        return paths
    digits, name = len(str(len(analyses))), "heatmap" if form is Format.heatmap else "tree"
    paths = [folder / f"{name}-{number:0{digits}}.svg" for number in range(1, len(analyses) + 1)]
    for path, analysis in zip(paths, analyses, strict=True):
        write_file([analysis], form, path, width=width, source=source)
    return paths


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
