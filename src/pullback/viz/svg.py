"""Helpers of all SVG drawings: escaping, type, colours for light and dark pages, and stacking."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from pullback.viz.characters import display_width, visible

SIZE = 16  # of the words, in pixels
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_STYLE = (  # a file of its own follows the reader's light or dark setting; inside a page the colours are the page's
    f".pullback-drawing{{font-family:{_FONT}}}"
    ".pullback-drawing text{fill:currentColor;stroke:none}"
    ".pullback-drawing:root{color:#1f2328;background:#fff}"
    "@media(prefers-color-scheme:dark){.pullback-drawing:root{color:#e6edf3;background:#0d1117}}"
)
_NARROW, _BROAD = set("iljtfrI.,:;'`!|()[]{} -"), set("mwMW@%—…")


def document(body: str, width: float, height: float, title: str) -> str:
    """One self-contained SVG element. Its ink is `currentColor`: the page's, where it is inside one."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pullback-drawing" role="img" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" font-size="{SIZE}">'
        f"<style>{_STYLE}</style><title>{escaped(title)}</title>{body}</svg>"
    )


def text(x: float, y: float, content: str, *, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{more}>{escaped(content)}</text>'


def escaped(content: str) -> str:
    r"""Any string as the content of an XML element.

    >>> escaped("<b> & \x00")
    '&lt;b&gt; &amp; \\x00'
    """
    return escape(visible(content))


def text_width(content: str) -> float:
    """About the pixels that a text takes in a proportional font; a drawing must leave some room for the error."""
    shown = visible(content)
    columns = display_width(shown) - sum(c in _NARROW or c in _BROAD for c in shown)
    ems = 0.6 * columns + 0.35 * sum(c in _NARROW for c in shown) + 0.92 * sum(c in _BROAD for c in shown)
    return SIZE * ems


def stacked(drawings: Sequence[str], gap: float = 24) -> str:
    """Several drawings below each other, as one SVG element.

    >>> 'width="30" height="42"' in stacked([document("", 10, 20, "a"), document("", 30, 20, "b")], gap=2)
    True
    """
    sizes = [[float(value) for value in _SIZE.search(drawing).groups()] for drawing in drawings]  # type: ignore[union-attr]
    body, y = [], 0.0
    for drawing, (_, height) in zip(drawings, sizes, strict=True):
        body.append(drawing.replace("<svg ", f'<svg y="{number(y)}" ', 1))
        y += height + gap
    return document("".join(body), max((width for width, _ in sizes), default=0), max(y - gap, 0), f"{len(sizes)} drawings")


def number(value: float) -> str:
    """A coordinate, short: one digit after the point at most."""
    return f"{value:.1f}".removesuffix(".0")


_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
