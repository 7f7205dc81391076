"""Alignments of two sequences: the path over a heat map of marginals, as text and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.characters import display_width, padded, visible
from pullback.viz.checks import checked_matrix, plain, refuse_string, whole
from pullback.viz.heatmap_svg import CELL, grid_svg
from pullback.viz.heatmap_text import shade, shortened
from pullback.viz.svg import number
from pullback.viz.tags_text import subset_text

Path = Sequence[Sequence[int]]


def alignment_text(
    rows: Sequence[str], columns: Sequence[str], path: Path | Any, *, marginals: Sequence[Sequence[float]] | Any = None,
    width: int = 100,
) -> str:  # fmt: skip
    """The cells of a path as ●, over marginals as shades if they are given; columns have numbers, which a list below explains.

    Args:
        rows: the n items of one sequence.
        columns: the m items of the other.
        path: the (row, column) pairs of the path, from 0; `Alignment.path(z)`, say.
        marginals: `[n, m]`, from 0 to 1.
        width: the width of the terminal; columns that do not fit continue below.

    >>> print(alignment_text(["a", "cat"], ["un", "petit", "chat"], [(0, 0), (0, 1), (1, 2)]))
           1 2 3
    1 a    ● ● ·
    2 cat  · · ●
    1 un 2 petit 3 chat
    """
    cells, mu = _checked(rows, columns, path, marginals)
    there, digits = set(cells), len(str(len(rows)))
    labels = [f"{i:>{digits}} {shortened(visible(item))}" for i, item in enumerate(rows, 1)]
    margin = max(map(display_width, labels), default=0) + 1
    each = 1 + len(str(len(columns)))
    block = max((width - margin) // each, 8)
    parts = []
    for start in range(0, max(len(columns), 1), block):
        here = range(start, min(start + block, len(columns)))
        lines = [" " * margin + "".join(str(j + 1).rjust(each) for j in here)]
        for i, label in enumerate(labels):
            values = [None if mu is None else mu[i][j] for j in here]
            marks = [_cell((i, j) in there, value, each) for j, value in zip(here, values, strict=True)]
            lines.append(padded(label, margin) + "".join(marks))
        parts.append("\n".join(line.rstrip() for line in lines))
    legend = subset_text([f"{j} {item}" for j, item in enumerate(columns, 1)], [], width=width)
    return "\n\n".join(parts) + f"\n{legend}"


def alignment_svg(
    rows: Sequence[str], columns: Sequence[str], path: Path | Any, *, marginals: Sequence[Sequence[float]] | Any = None
) -> str:
    """The path as dots, joined in the order of its cells, over squares whose opacity is the marginal, where these are given.

    One self-contained SVG element; see `alignment_text` for the arguments.

    >>> alignment_svg(["a", "cat"], ["un", "chat"], [(0, 0), (1, 1)]).count("<circle")
    2
    """
    cells, mu = _checked(rows, columns, path, marginals)
    there = set(cells)
    values = mu or [[0.35 * ((i, j) in there) for j in range(len(columns))] for i in range(len(rows))]

    def line(left: float, top: float) -> str:
        points = [(left + (j + 0.5) * CELL, top + (i + 0.5) * CELL) for i, j in cells]
        joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        dots = "".join(f'<circle cx="{number(x)}" cy="{number(y)}" r="4" fill="currentColor"/>' for x, y in points)
        return f'<polyline points="{joined}" fill="none" stroke="currentColor" stroke-width="1.5"/>{dots}'

    tips = [[f"{a} × {b}" + (f": {mu[i][j]:.3f}" if mu else "") for j, b in enumerate(columns)] for i, a in enumerate(rows)]
    return grid_svg(rows, columns, values, tips, over=line, title=f"{' '.join(rows)} | {' '.join(columns)}")


def _checked(
    rows: Sequence[str], columns: Sequence[str], path: Path | Any, marginals: Any
) -> tuple[list[tuple[int, int]], list[list[float]] | None]:
    refuse_string(rows)
    refuse_string(columns)
    pairs = [plain(cell) if hasattr(cell, "__iter__") else [cell] for cell in plain(path)]
    for pair in pairs:
        if len(pair) != 2 or None in map(whole, pair) or any(isinstance(x, float) for x in pair):
            raise ValueError(f"path has the entry {pair}; it must list (row, column) pairs of integers: pass alignment.path(z)")
    cells = [(int(i), int(j)) for i, j in pairs]
    for i, j in cells:
        if not (0 <= i < len(rows) and 0 <= j < len(columns)):
            raise ValueError(f"the cell ({i}, {j}) is outside the {len(rows)} x {len(columns)} table; positions start at 0")
    return cells, None if marginals is None else checked_matrix(len(rows), len(columns), marginals)


def _cell(on_path: bool, value: float | None, width: int) -> str:
    if value is None:
        return ("●" if on_path else "·").rjust(width)
    return shade(value) * (width - 1) + ("●" if on_path else shade(value))
