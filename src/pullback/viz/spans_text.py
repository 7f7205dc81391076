"""Spans and segments of a sentence as brackets below its words, for terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.boxes import levels_of
from pullback.viz.characters import display_width, has_certain_width, padded, visible
from pullback.viz.checks import checked_spans, plain, whole


def spans_text(tokens: Sequence[str], spans: Sequence[Sequence[Any]] | Any, *, width: int = 100) -> str:
    """Spans as brackets below the words, the inner ones first; in bracket notation if that is wider than `width` columns.

    Spans of one word without a label, the leaves of a `BinaryTree`, are not drawn.

    Args:
        tokens: the n words.
        spans: (first, last) or (first, last, label), positions from 0, both included; `BinaryTree.brackets(z)`, say.
        width: the columns of the terminal.

    >>> print(spans_text(["A", "fun", "film", "."], [(1, 2), (0, 2, "NP"), (0, 3)]))
    A fun film .
      └──────┘
    └───NP───┘
    └──────────┘
    """
    drawn = [span for span in checked_spans(tokens, spans) if span[0] < span[1] or span[2]]
    words = [visible(token) for token in tokens]
    labels = [visible(label) for _, _, label in drawn]
    sizes = [max(display_width(word), 1) for word in words]
    for (first, last, _), label in zip(drawn, labels, strict=True):
        sizes[last] += max(display_width(label) + 2 - (sum(sizes[first : last + 1]) + last - first), 0)
    starts = [sum(sizes[:i]) + i for i in range(len(words))]
    if sum(sizes) + len(words) - 1 > width or not all(has_certain_width(word) for word in (*words, *labels)):
        return _notation(words, drawn, width)
    levels = levels_of((first, last) for first, last, _ in drawn)
    lines = [" ".join(padded(word, size) for word, size in zip(words, sizes, strict=True))]
    for level in range(1, max(levels, default=0) + 1):
        line = ""
        here = [(span, label) for span, label, its in zip(drawn, labels, levels, strict=True) if its == level]
        for (first, last, _), label in sorted(here):
            inside = starts[last] + sizes[last] - starts[first] - 2
            bracket = "└" + _centred(label, inside) + "┘"
            line = padded(line, starts[first]) + bracket
        lines.append(line)
    return "\n".join(line.rstrip() for line in lines)


def segments_text(
    tokens: Sequence[str], segments: Sequence[Sequence[Any]] | Any, *, labels: Sequence[str] | None = None, width: int = 100
) -> str:
    """Labelled segments as brackets below the words: the `spans_text` of `Segmentation.segments(z)`.

    Args:
        tokens: the n words.
        segments: (start, end, label), positions from 0, the end excluded.
        labels: names for labels that are numbers.
        width: the columns of the terminal.

    >>> print(segments_text(["A", "fun", "film", "works"], [(0, 3, 0), (3, 4, 1)], labels=["NP", "VP"]))
    A fun film works
    └───NP───┘ └VP─┘
    """
    return spans_text(tokens, segment_spans(segments, labels), width=width)


def segment_spans(segments: Sequence[Sequence[Any]] | Any, labels: Sequence[str] | None) -> list[tuple[int, int, str]]:
    """Segments (start, end, label), the end excluded, as spans (first, last, label)."""
    spans = []
    for segment in map(plain, segments):
        if len(segment) != 3 or None in map(whole, segment[:2]):
            raise ValueError(f"a segment is {segment}; it must be (start, end, label), the end excluded")
        start, end, label = segment
        if labels:
            place = whole(label)
            if place is None or not 0 <= place < len(labels):
                raise ValueError(f"the label of segment {segment} is not from 0 to {len(labels) - 1}, as the labels are")
            label = labels[place]
        spans.append((int(start), int(end) - 1, str(label)))
    return spans


def _centred(label: str, width: int) -> str:
    space = width - display_width(label)
    return "─" * (space // 2) + label + "─" * (space - space // 2)


def _notation(words: list[str], spans: list[tuple[int, int, str]], width: int) -> str:
    """(NP A (fun film)), broken into lines at spaces."""
    pieces = list(words)
    for first, last, label in spans:  # inner ones first, so that outer brackets come outside
        pieces[first] = f"({visible(label)} {pieces[first]}" if label else f"({pieces[first]}"
        pieces[last] += ")"
    lines = [""]
    for piece in " ".join(pieces).split(" "):
        if lines[-1] and display_width(lines[-1]) + 1 + display_width(piece) > width:
            lines.append("")
        lines[-1] += f" {piece}" if lines[-1] else piece
    return "\n".join(lines)
