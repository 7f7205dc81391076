"""Arc marginals as a heat map in SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.viz.checks import checked_marginals
from pullback.viz.svg import SIZE, document, escaped, number, text, text_width
from pullback.viz.trees_text import ROOT

CELL = 24.0
_COLOUR = "#0072b2"


def heatmap_svg(tokens: Sequence[str], marginals: Sequence[Sequence[float]] | Any) -> str:
    """Marginals as squares whose opacity is the probability: one row per head, the root first, and one column per modifier.

    The value of a square is its tooltip.

    Args:
        tokens: the n words.
        marginals: `[n, n]`, head x modifier, root on the diagonal; `structure.marginals(scores)`, say, or a tree.

    >>> drawing = heatmap_svg(["fun", "film"], [[0.1, 0.0], [0.9, 1.0]])
    >>> drawing.count("<rect"), "film → fun: 0.900" in drawing
    (3, True)
    """
    mu = checked_marginals(tokens, marginals)
    n, heads = len(tokens), [ROOT, *tokens]
    values = [[mu[m][m] for m in range(n)], *([0.0 if h == m else mu[h][m] for m in range(n)] for h in range(n))]
    tips = [[f"{head} → {token}: {value:.3f}" for token, value in zip(tokens, row, strict=True)]
            for head, row in zip(heads, values, strict=True)]  # fmt: skip
    return grid_svg(heads, tokens, values, tips, faint=1, title=" ".join(tokens))


def grid_svg(
    rows: Sequence[str], columns: Sequence[str], values: list[list[float]], tips: list[list[str]], *, title: str,
    faint: int = 0, over: Callable[[float, float], str] = lambda left, top: "",
) -> str:  # fmt: skip
    """Squares whose opacity is the value, with names of rows and columns.

    Args:
        rows: names of the n rows; the first `faint` of them are pale.
        columns: names of the m columns.
        values: `[n, m]`, from 0 to 1; there is no square for 0.
        tips: `[n, m]`, the tooltip of each square.
        title: of the drawing.
        faint: how many names of rows are pale.
        over: what to draw over the squares, given the left and top end of the grid.
    """
    left = max(map(text_width, rows), default=0.0) * 1.1 + 12
    top = max(map(text_width, columns), default=0.0) * 1.1 + 12
    body = []
    for i, label in enumerate(rows):
        y = top + i * CELL
        body.append(text(left - 6, y + CELL / 2 + SIZE / 3, label, anchor="end", more=' opacity=".65"' if i < faint else ""))
        body += [_square(left + j * CELL, y, values[i][j], tips[i][j]) for j in range(len(columns)) if values[i][j] > 0]
    for j, label in enumerate(columns):
        x = left + (j + 0.5) * CELL + SIZE / 3
        turn = f' transform="rotate(-90 {number(x)} {number(top - 6)})"'
        body.append(text(x, top - 6, label, anchor="start", more=turn))
    width, height = len(columns) * CELL, len(rows) * CELL
    lines = "".join(f"M{number(left)} {number(top + i * CELL)}h{number(width)}" for i in range(len(rows) + 1))
    lines += "".join(f"M{number(left + j * CELL)} {number(top)}v{number(height)}" for j in range(len(columns) + 1))
    grid = f'<path d="{lines}" fill="none" stroke="currentColor" stroke-opacity=".15"/>'
    return document(grid + "".join(body) + over(left, top), left + width + 12, top + height + 12, title)


def _square(x: float, y: float, value: float, tooltip: str) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(CELL)}" height="{number(CELL)}" fill="{_COLOUR}" '
        f'fill-opacity="{value:.3f}"><title>{escaped(tooltip)}</title></rect>'
    )
