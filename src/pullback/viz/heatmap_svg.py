"""Arc marginals as a heat map in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.checks import checked_marginals
from pullback.viz.svg import SIZE, document, escaped, number, text, text_width
from pullback.viz.trees_text import ROOT

_CELL = 24.0
_COLOUR = "#0072b2"


def heatmap_svg(tokens: Sequence[str], marginals: Sequence[Sequence[float]] | Any) -> str:
    """Marginals as squares whose opacity is the probability: a row for each head, the root first, a column a modifier.

    The value of a square is its tooltip.

    Args:
        tokens: the n words.
        marginals: `[n, n]`, head x modifier, root on the diagonal; `structure.marginals(scores)`, say, or a tree.

    >>> drawing = heatmap_svg(["fun", "film"], [[0.1, 0.0], [0.9, 1.0]])
    >>> drawing.count("<rect"), "film → fun: 0.900" in drawing
    (3, True)
    """
    mu = checked_marginals(tokens, marginals)
    n, labels = len(tokens), [ROOT, *tokens]
    left = max(map(text_width, labels)) * 1.1 + 12
    top = max(map(text_width, tokens), default=0.0) * 1.1 + 12
    body = []
    for row, label in enumerate(labels):
        y = top + row * _CELL
        faint = ' opacity=".65"' if row == 0 else ""
        body.append(text(left - 6, y + _CELL / 2 + SIZE / 3, label, anchor="end", more=faint))
        for m in range(n):
            value = mu[m][m] if row == 0 else 0.0 if m == row - 1 else mu[row - 1][m]
            if value > 0:
                body.append(_square(left + m * _CELL, y, value, f"{label} → {tokens[m]}: {value:.3f}"))
    for m, token in enumerate(tokens):
        x = left + (m + 0.5) * _CELL + SIZE / 3
        turn = f' transform="rotate(-90 {number(x)} {number(top - 6)})"'
        body.append(text(x, top - 6, token, anchor="start", more=turn))
    lines = "".join(
        f"M{number(left)} {number(top + i * _CELL)}h{number(n * _CELL)}" for i in range(n + 2)
    ) + "".join(f"M{number(left + i * _CELL)} {number(top)}v{number((n + 1) * _CELL)}" for i in range(n + 1))
    grid = f'<path d="{lines}" fill="none" stroke="currentColor" stroke-opacity=".15"/>'
    return document(grid + "".join(body), left + n * _CELL + 12, top + (n + 1) * _CELL + 12, " ".join(tokens))


def _square(x: float, y: float, value: float, tooltip: str) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(_CELL)}" height="{number(_CELL)}" fill="{_COLOUR}" '
        f'fill-opacity="{value:.3f}"><title>{escaped(tooltip)}</title></rect>'
    )
