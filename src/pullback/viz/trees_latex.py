r"""Dependency trees as LaTeX, for the package tikz-dependency."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pullback.viz.characters import visible
from pullback.viz.checks import checked_heads

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "&": r"\symbol{38}",  # \& separates the words of a deptext
    "[": "{[}", "]": "{]}",  # after \& a bracket would begin an option
}  # fmt: skip
_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)|(?<=[?!])(?=`)")


def tree_latex(tokens: Sequence[str], heads: Sequence[int] | Any) -> str:
    r"""A tree as a `dependency` environment of tikz-dependency.

    The document needs `\usepackage{tikz-dependency}` and `\usepackage[T1]{fontenc}`; for scripts other than Latin,
    XeLaTeX or LuaLaTeX with a font that has them.

    Args:
        tokens: the n words.
        heads: the head of each word, `[n]`: 0 is the root, 1 the first word.

    >>> print(tree_latex(["100", "%", "fun"], [2, 3, 0]))
    \begin{dependency}[hide label, edge unit distance=1.1ex]
    \begin{deptext}[column sep=0.4cm]
    100 \& \% \& fun \\
    \end{deptext}
    \depedge{2}{1}{}
    \depedge{3}{2}{}
    \deproot[edge unit distance=2.5ex]{3}{}
    \end{dependency}
    """
    arcs = [
        rf"\depedge{{{head}}}{{{word}}}{{}}" if head else rf"\deproot[edge unit distance=2.5ex]{{{word}}}{{}}"
        for word, head in enumerate(checked_heads(tokens, heads), 1)
    ]
    return "\n".join([
        r"\begin{dependency}[hide label, edge unit distance=1.1ex]",
        r"\begin{deptext}[column sep=0.4cm]",
        r" \& ".join(latex_escaped(token) or "{}" for token in tokens) + r" \\",
        r"\end{deptext}",
        *arcs,
        r"\end{dependency}",
    ])  # fmt: skip


def latex_escaped(token: str) -> str:
    r"""A string as LaTeX text that shows it as it is: no commands, no separators, no ligatures of dashes.

    >>> print(latex_escaped("a_b & {c} --"))
    a\_b \symbol{38} \{c\} -{}-
    """
    shown = _LIGATURES.sub("\0", visible(token))  # \0 cannot occur in it
    return "".join("{}" if c == "\0" else _ESCAPES.get(c, c) for c in shown)
