"""Tags, spans, segments and chosen items of a sentence as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.viz.boxes import levels_of
from pullback.viz.checks import checked_spans
from pullback.viz.spans_text import segment_spans
from pullback.viz.svg import SIZE, document, number, text, text_width
from pullback.viz.tags_text import checked_subset, checked_tags

_SPACE, _MARGIN, _LEVEL, _BASE = 18.0, 12.0, 26.0, 12.0 + SIZE
_SMALL = f' font-size="{number(0.8 * SIZE)}" opacity=".75"'
_LINES = '<g fill="none" stroke="currentColor" stroke-width="1.3" stroke-opacity=".75">'


def tags_svg(tokens: Sequence[str], tags: Sequence[Any] | Any, *, names: Sequence[str] | None = None) -> str:
    """The tag of each word below it, as one self-contained SVG element; see `tags_text`.

    >>> tags_svg(["A", "film"], ["DET", "NOUN"]).count("<text")
    4
    """
    shown = checked_tags(tokens, tags, names)
    extents, width = _extents([max(text_width(a), text_width(b)) for a, b in zip(tokens, shown, strict=True)])
    body = _words(tokens, extents)
    body += [text((a + b) / 2, _BASE + 22, tag, more=_SMALL) for tag, (a, b) in zip(shown, extents, strict=True)]
    return document("".join(body), width, _BASE + 34, " ".join(tokens))


def spans_svg(tokens: Sequence[str], spans: Sequence[Sequence[Any]] | Any) -> str:
    """Spans as brackets below the words, as one self-contained SVG element; see `spans_text`.

    >>> spans_svg(["A", "fun", "film"], [(1, 2), (0, 2, "NP"), (0, 0)]).count('class="span"')
    2
    """
    drawn = [span for span in checked_spans(tokens, spans) if span[0] < span[1] or span[2]]
    widths = [max(text_width(token), 8.0) for token in tokens]
    for first, last, label in drawn:
        widths[last] += max(text_width(label) - sum(widths[first : last + 1]) - _SPACE * (last - first), 0)
    extents, width = _extents(widths)
    levels = levels_of((first, last) for first, last, _ in drawn)
    lines, labels = [], []
    for (first, last, label), level in zip(drawn, levels, strict=True):
        start, end, y = extents[first][0], extents[last][1], _BASE + _LEVEL * level - 12
        lines.append(f'<path class="span" d="M{number(start)} {number(y - 6)}v6H{number(end)}v-6"/>')
        labels.append(text((start + end) / 2, y + 0.8 * SIZE, label, more=_SMALL) if label else "")
    body = [*_words(tokens, extents), _LINES, *lines, "</g>", *labels]
    return document("".join(body), width, _BASE + _LEVEL * max(levels, default=0) + 12, " ".join(tokens))


def segments_svg(tokens: Sequence[str], segments: Sequence[Sequence[Any]] | Any, *, labels: Sequence[str] | None = None) -> str:
    """Labelled segments as brackets below the words, as one self-contained SVG element; see `segments_text`.

    >>> segments_svg(["A", "film"], [(0, 2, 1)], labels=["VP", "NP"]).count("NP")
    1
    """
    return spans_svg(tokens, segment_spans(segments, labels))


def subset_svg(items: Sequence[str], chosen: Sequence[int] | Any) -> str:
    """The items in a line, those that are chosen in boxes, as one self-contained SVG element; see `subset_text`.

    >>> subset_svg(["A", "fun", "film"], [1]).count("<rect")
    1
    """
    taken = checked_subset(items, chosen)
    extents, width = _extents([max(text_width(item), 8.0) for item in items])
    boxes = [
        f'<rect x="{number(start - 6)}" y="{number(_BASE - SIZE - 3)}" width="{number(end - start + 12)}" '
        f'height="{number(SIZE + 12)}" rx="5" fill="#0072b2" fill-opacity=".25" stroke="#0072b2"/>'
        for start, end in (extents[i] for i in sorted(taken))
    ]
    faint = ["" if i in taken else ' opacity=".65"' for i in range(len(items))]
    return document("".join(boxes + _words(items, extents, faint)), width, _BASE + 18, " ".join(items))


def _extents(widths: Sequence[float]) -> tuple[list[tuple[float, float]], float]:
    """The left and right end of each word, and the width of the drawing."""
    extents, x = [], _MARGIN
    for width in widths:
        extents.append((x, x + width))
        x += width + _SPACE
    return extents, x - (_SPACE if widths else 0) + _MARGIN


def _words(tokens: Sequence[str], extents: list[tuple[float, float]], more: Sequence[str] = ()) -> list[str]:
    options = more or [""] * len(tokens)
    return [text((a + b) / 2, _BASE, token, more=each) for token, (a, b), each in zip(tokens, extents, options, strict=True)]
