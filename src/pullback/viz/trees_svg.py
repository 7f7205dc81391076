"""Dependency trees as SVG: arcs above the words, arrows at the modifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.checks import checked_heads
from pullback.viz.svg import SIZE, document, number, text, text_width

_SPACE, _MARGIN, _LEVEL, _TOP = 18.0, 12.0, 24.0, 26.0
_SPREAD = 7.0  # between the ends of arcs at one word; less at a word with many arcs
_ROOM = 56.0  # the widest that its arcs make a word
_ARROW = 6.0


def tree_svg(tokens: Sequence[str], heads: Sequence[int] | Any) -> str:
    """A tree as one self-contained SVG element, for light and dark pages: inside a page it has the page's colours.

    An arrow points at the middle of its word; a root word has a line from the top. Arcs that lie inside another are lower;
    those of a non-projective tree may cross.

    Args:
        tokens: the n words.
        heads: the head of each word, `[n]`: 0 is the root, 1 the first word.

    >>> drawing = tree_svg(["A", "film"], [2, 0])
    >>> drawing.startswith("<svg "), drawing.count("<text"), drawing.count('class="arc"')
    (True, 3, 1)
    """
    listed = checked_heads(tokens, heads)
    centres, width = _centres(tokens, listed)
    levels = _levels(listed)
    ends = _ends(tokens, listed, centres)
    base = _TOP + 0.75 * _LEVEL * max(levels.values(), default=1) + 10  # a Bezier curve reaches 3/4 of its handles
    body = []
    for word, head in enumerate(listed, 1):
        x = ends[word, head]
        if head == 0:
            body.append(f'<path class="root-arc" d="M{number(x)} {number(_TOP)}V{number(base)}"/>')
        else:
            y = base - _LEVEL * levels[word]
            start = ends[head, word]
            body.append(
                f'<path class="arc" d="M{number(start)} {number(base)}C{number(start)} {number(y)} '
                f'{number(x)} {number(y)} {number(x)} {number(base)}"/>'
            )
        body.append(_arrow(x, base))
    lines = f'<g fill="none" stroke="currentColor" stroke-width="1.3" stroke-opacity=".75">{"".join(body)}</g>'
    small = f' font-size="{number(0.75 * SIZE)}" opacity=".65"'
    roots = [text(ends[word, 0], _TOP - 6, "root", more=small) for word, head in enumerate(listed, 1) if head == 0]
    words = [text(x, base + _ARROW + SIZE, token) for token, x in zip(tokens, centres, strict=True)]
    return document(lines + "".join(roots + words), width, base + _ARROW + SIZE + 10, " ".join(tokens))


def _centres(tokens: Sequence[str], heads: list[int]) -> tuple[list[float], float]:
    """The middle of each word, and the width of all words."""
    centres, x = [], _MARGIN
    for word, token in enumerate(tokens, 1):
        width = _width(token, heads, word)
        centres.append(x + width / 2)
        x += width + _SPACE
    return centres, x - (_SPACE if tokens else 0) + _MARGIN


def _width(token: str, heads: list[int], word: int) -> float:
    arcs = 1 + heads.count(word)
    return max(text_width(token), min(_SPREAD * arcs, _ROOM), 28.0 if heads[word - 1] == 0 else 8.0)


def _levels(heads: list[int]) -> dict[int, int]:
    """For the arc into each word, one more than the highest arc inside it; root arcs have none."""
    arcs = sorted((abs(head - word), word) for word, head in enumerate(heads, 1) if head)
    levels: dict[int, int] = {}
    for _, word in arcs:
        first, last = sorted((word, heads[word - 1]))
        inside = [
            level for other, level in levels.items()
            if first <= min(other, heads[other - 1]) and max(other, heads[other - 1]) <= last
        ]  # fmt: skip
        levels[word] = 1 + max(inside, default=0)
    return levels


def _ends(tokens: Sequence[str], heads: list[int], centres: list[float]) -> dict[tuple[int, int], float]:
    """Where the arc between a word and its neighbour in the tree meets the word, so that no two ends coincide.

    The arrow of the word's own head (or the root's line) points at its middle. From left to right: arcs to the left, the
    shortest first; the root's; arcs to the right, the longest first. Then arcs of one word do not cross, and all ends lie
    within the word's width.
    """
    ends = {}
    for word, head in enumerate(heads, 1):
        others = [other for other, its in enumerate(heads, 1) if its == word] + ([head] if head else [])
        left = sorted((other for other in others if other < word), reverse=True)
        right = sorted((other for other in others if other > word), reverse=True)
        ordered = [*left, *([] if head else [0]), *right]
        middle = ordered.index(head)
        most = max(middle, len(ordered) - 1 - middle, 1)
        step = min(_SPREAD, _width(tokens[word - 1], heads, word) / 2 / most)
        for rank, other in enumerate(ordered):
            ends[word, other] = centres[word - 1] + step * (rank - middle)
    return ends


def _arrow(x: float, y: float) -> str:
    half = _ARROW / 2
    return (
        f'<path fill="currentColor" stroke="none" d="M{number(x - half)} {number(y - 1)}h{number(_ARROW)}'
        f'l-{number(half)} {number(_ARROW)}z"/>'
    )
