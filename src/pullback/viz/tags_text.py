"""Tags below words, and chosen items of a list, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.characters import display_width, padded, visible
from pullback.viz.checks import one_each, plain, refuse_string, whole


def tags_text(tokens: Sequence[str], tags: Sequence[Any] | Any, *, names: Sequence[str] | None = None, width: int = 100) -> str:
    """The tag of each word below it; a sentence wider than `width` columns continues below.

    Args:
        tokens: the n words.
        tags: the tag of each word, `[n]`; `LinearChain.tags(z)`, say. Entries of -1 after the n words are padding.
        names: names for tags that are numbers.
        width: the columns of the terminal.

    >>> print(tags_text(["A", "fun", "film"], [0, 1, 2], names=["DET", "ADJ", "NOUN"]))
    A   fun film
    DET ADJ NOUN
    """
    shown = [visible(tag) for tag in checked_tags(tokens, tags, names)]
    words = [visible(token) for token in tokens]
    blocks: list[tuple[str, str]] = [("", "")]
    for word, tag in zip(words, shown, strict=True):
        size = max(display_width(word), display_width(tag))
        above, below = blocks[-1]
        gap = " " if above else ""
        if above and display_width(above) + 1 + size > width:
            blocks.append(("", ""))
            above = below = gap = ""
        blocks[-1] = (above + gap + padded(word, size), below + gap + padded(tag, size))
    return "\n\n".join(f"{above.rstrip()}\n{below.rstrip()}" for above, below in blocks)


def subset_text(items: Sequence[str], chosen: Sequence[int] | Any, *, width: int = 100) -> str:
    """The items in lines of at most `width` columns, those that are chosen in brackets.

    Args:
        items: n words or names.
        chosen: the positions of the chosen items, from 0; `Subset.indices(z)`, say. Entries of -1 are padding.
        width: the columns of the terminal.

    >>> print(subset_text(["A", "fun", "film", "."], [1, 2]))
    A [fun] [film] .
    """
    taken = checked_subset(items, chosen)
    lines = [""]
    for position, item in enumerate(items):
        shown = f"[{visible(item)}]" if position in taken else visible(item)
        if lines[-1] and display_width(lines[-1]) + 1 + display_width(shown) > width:
            lines.append("")
        lines[-1] += f" {shown}" if lines[-1] else shown
    return "\n".join(lines)


def checked_tags(tokens: Sequence[str], tags: Sequence[Any] | Any, names: Sequence[str] | None) -> list[str]:
    """One tag per token, as text."""
    refuse_string(tokens)
    given = one_each(tokens, tags, "tags")
    if names is None:
        return [str(tag) for tag in given]
    for position, tag in enumerate(given):
        number = whole(tag)
        if number is None or not 0 <= number < len(names):
            raise ValueError(f"the tag of word {position} is {tag}; the {len(names)} names are for 0 to {len(names) - 1}")
    return [names[int(tag)] for tag in given]


def checked_subset(items: Sequence[str], chosen: Sequence[int] | Any) -> set[int]:
    """The positions of the chosen items."""
    refuse_string(items)
    taken = [position for position in plain(chosen) if whole(position) != -1]
    for position in taken:
        found = whole(position)
        if found is None or not 0 <= found < len(items):
            raise ValueError(f"item {position} is chosen; there are {len(items)} items, from 0")
    return set(map(int, taken))
