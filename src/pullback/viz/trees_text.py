"""Dependency trees drawn with box characters, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.viz.boxes import Boxes, levels_of
from pullback.viz.characters import display_width, has_certain_width, padded, visible
from pullback.viz.checks import checked_heads

ROOT = "root"


def tree_text(tokens: Sequence[str], heads: Sequence[int] | Any, *, width: int = 100) -> str:
    """A tree as text: arcs above the words if that fits into `width` columns, beside them otherwise, else as a list.

    A sentence with characters whose width differs between terminals has its arcs beside the words, where the width does
    not matter. All lines have the same display width.

    Args:
        tokens: the n words.
        heads: the head of each word, `[n]`: 0 is the root, 1 the first word; `DependencyTree.heads(z)`, say. Entries of -1
            after the n words are padding.
        width: the columns of the terminal.

    >>> print(tree_text(["A", "fun", "film", "."], [3, 3, 0, 3]))
      ┌──────────┐
      │  ┌──┬───┐│┌─┐
      │  ▼  ▼   │▼│ ▼
    root A fun film .
    """
    narrow = sum(map(display_width, tokens)) + len(tokens) <= width
    if narrow and all(has_certain_width(token) for token in tokens):
        above = tree_above(tokens, heads)
        if _width_of(above) <= width:
            return above
    beside = tree_beside(tokens, heads)
    return beside if _width_of(beside) <= width else tree_list(tokens, heads)


def tree_above(tokens: Sequence[str], heads: Sequence[int] | Any) -> str:
    """The words in a line, with the arcs above them. An arrow ends at a modifier; crossing arcs cross as ┼.

    All arcs from one head to one side share a line, so that a flat tree is one line high.
    """
    governors, words = [-1, *checked_heads(tokens, heads)], [ROOT, *map(visible, tokens)]
    children = _children(governors)
    places = _places(words, children)
    combs = []
    for head in _deepest_first(governors):
        centre = places[head].centre
        left = [places[m].centre for m in children[head] if m < head]
        right = [places[m].centre for m in children[head] if m > head]
        if left:
            combs.append(_Comb(centre - 1, left, min(left), centre - 1))
        if right:
            combs.append(_Comb(centre + 1 if head else centre, right, centre + 1 if head else centre, max(right)))
    levels = levels_of((comb.first, comb.last) for comb in combs)
    bottom = max(levels, default=0)
    boxes = Boxes(bottom + 1, places[-1].end)
    for comb, level in zip(combs, levels, strict=True):
        boxes.horizontal(bottom - level, comb.first, comb.last)
        for column in (comb.head, *comb.modifiers):
            boxes.vertical(column, bottom - level, bottom)
            boxes.put(bottom, column, "│" if column == comb.head else "▼")
    line = " ".join(padded(word, place.end - place.start, "^") for word, place in zip(words, places, strict=True))
    return "\n".join([*boxes.rows(), line] if tokens else [line])


def tree_beside(tokens: Sequence[str], heads: Sequence[int] | Any) -> str:
    """One word per line, with the arcs to the left of the words; where arcs cross, the vertical one is interrupted.

    >>> print(tree_beside(["A", "fun", "film", "."], [3, 3, 0, 3]))
    ┌──── root
    │ ┌─► A
    │ ├─► fun
    └─┼─► film
      └─► .
    """
    governors, words = [-1, *checked_heads(tokens, heads)], [ROOT, *map(visible, tokens)]
    children = _children(governors)
    order = [word for word in _deepest_first(governors) if children[word]]
    spans = [(min(word, *children[word]), max(word, *children[word])) for word in order]
    levels = levels_of(spans)
    arrow = 2 * max(levels, default=0)
    columns = {word: arrow - 2 * level for word, level in zip(order, levels, strict=True)}
    boxes = Boxes(len(words), arrow + 1)
    for head, (first, last) in zip(order, spans, strict=True):
        boxes.vertical(columns[head], first, last)
    for word, head in enumerate(governors):
        start = columns[head] if word else columns.get(0, 0)
        boxes.horizontal(word, start, arrow)
        boxes.put(word, arrow, "►" if word else "─")
        for other, (first, last) in zip(order, spans, strict=True):
            if other not in (word, head) and first < word < last and start < columns[other]:
                boxes.put(word, columns[other], "─")
    width = max(map(display_width, words))
    return "\n".join(f"{row} {padded(word, width)}" for row, word in zip(boxes.rows(), words, strict=True))


def tree_list(tokens: Sequence[str], heads: Sequence[int] | Any) -> str:
    """One word per line, with its number and its head; for sentences that no drawing fits.

    >>> print(tree_list(["A", "fun", "film", "."], [3, 3, 0, 3]))
    1 A    ← 3 film
    2 fun  ← 3 film
    3 film ← root
    4 .    ← 3 film
    """
    listed, words = checked_heads(tokens, heads), [visible(token) for token in tokens]
    digits, width = len(str(len(words))), max(map(display_width, words), default=0)
    lines = [
        f"{m:>{digits}} {padded(word, width)} ← {f'{h} {words[h - 1]}' if h else ROOT}"
        for m, (word, h) in enumerate(zip(words, listed, strict=True), 1)
    ]
    longest = max(map(display_width, lines), default=0)
    return "\n".join(padded(line, longest) for line in lines)


class _Place(NamedTuple):
    """The columns of a word: from `start` up to `end`, with its incoming arc at `centre`."""

    start: int
    centre: int
    end: int


class _Comb(NamedTuple):
    """The arcs from one head to one side: columns of the head and of the modifiers, and the extent of the line."""

    head: int
    modifiers: list[int]
    first: int
    last: int


def _places(words: list[str], children: list[list[int]]) -> list[_Place]:
    """A head needs a column on each side of its centre, where its own arcs leave."""
    places, start = [], 0
    for word, text in enumerate(words):
        size = max(display_width(text), 3 if children[word] else 1)
        places.append(_Place(start, start + size // 2, start + size))
        start += size + 1
    return places


def _children(governors: list[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in governors]
    for word, head in enumerate(governors[1:], 1):
        children[head].append(word)
    return children


def _deepest_first(governors: list[int]) -> list[int]:
    depths = [0] * len(governors)
    for word in range(1, len(governors)):
        head = word
        while head:
            depths[word] += 1
            head = governors[head]
    return sorted(range(len(governors)), key=lambda word: -depths[word])


def _width_of(block: str) -> int:
    return display_width(block.partition("\n")[0])
