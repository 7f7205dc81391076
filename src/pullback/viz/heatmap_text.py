"""Arc marginals as a heat map of shaded characters, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.characters import display_width, padded, visible
from pullback.viz.checks import checked_marginals
from pullback.viz.trees_text import ROOT

_SHADES = "·░▒▓█"
_LONGEST_LABEL = 24


def heatmap_text(tokens: Sequence[str], marginals: Sequence[Sequence[float]] | Any, *, width: int = 100) -> str:
    """Marginals as shades: one row per head, the root first, and one column per modifier, by its number.

    A blank is exactly 0; · is below 1/8, ░ about 1/4, ▒ 1/2, ▓ 3/4, and █ from 7/8 on. Columns that do not fit into `width`
    continue below, and all lines have the same display width.

    Args:
        tokens: the n words.
        marginals: `[n, n]`, head x modifier, root on the diagonal; `structure.marginals(scores)`, say, or a tree.
        width: the columns of the terminal.

    >>> print(heatmap_text(["fun", "film"], [[0.1, 0.0], [0.9, 1.0]]))
             1 2
      root  ··██
    1 fun
    2 film  ██
    """
    mu = checked_marginals(tokens, marginals)
    n = len(tokens)
    digits = len(str(n))
    words = [shortened(visible(token)) for token in tokens]
    labels = [" " * digits + f" {ROOT}", *(f"{i:>{digits}} {word}" for i, word in enumerate(words, 1))]
    margin = max(map(display_width, labels)) + 2
    each = 2 if margin + 2 * n <= width else 1
    block = max((width - margin) // each, 8)
    parts = [_block(mu, labels, margin, each, range(start, min(start + block, n))) for start in range(0, n, block)]
    return "\n\n".join("\n".join(padded(line, margin + each * min(block, n)) for line in part) for part in parts)


def _block(mu: list[list[float]], labels: list[str], margin: int, each: int, columns: range) -> list[str]:
    """The columns of some modifiers, under their numbers, whose digits stand below each other."""
    numbers = [str(m + 1).rjust(len(str(columns.stop))) for m in columns]
    lines = [" " * margin + "".join(digit.rjust(each) for digit in row) for row in zip(*numbers, strict=True)]
    roots = [mu[m][m] for m in range(len(mu))]
    for label, row, head in zip(labels, [roots, *mu], range(-1, len(mu)), strict=True):
        shades = "".join((" " if m == head else shade(row[m])) * each for m in columns)
        lines.append(padded(label, margin) + shades)
    return lines


def shade(value: float) -> str:
    return " " if value == 0 else _SHADES[round(4 * value)]


def shortened(word: str) -> str:
    if display_width(word) <= _LONGEST_LABEL:
        return word
    kept = word
    while display_width(kept) > _LONGEST_LABEL - 1:
        kept = kept[:-1]
    return kept + "…"
