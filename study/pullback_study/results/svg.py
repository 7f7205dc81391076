"""Charts as SVG, without a plotting library: they follow the page's light or dark colours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from pullback.viz import visible
from pullback_study.results.statistics import quartiles

if TYPE_CHECKING:
    from pullback_study.results.cells import Cell
    from pullback_study.results.figures import Curve

_WIDTH, _HEIGHT = 440.0, 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 24.0, 30.0, 44.0
# Okabe and Ito's colours, which people with colour blindness can tell apart; with the dashes, 56 lines look different.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "currentColor", "#8a7d00")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "14 4", "1 4")
_STYLE = (  # a file of its own follows the reader's light or dark setting; inside a page the colours are the page's
    ".chart{font-family:system-ui,sans-serif}.chart text{fill:currentColor;stroke:none}"
    ".chart:root{color:#1f2328;background:#fff}"
    "@media(prefers-color-scheme:dark){.chart:root{color:#e6edf3;background:#0d1117}}"
)


def lines(curves: Sequence[Curve], x_label: str, y_label: str) -> str:
    """Curves with their bands, and a legend below."""
    xs = [x for curve in curves for x in curve.x]
    ys = [y for curve in curves for y in (*curve.low, *curve.high) if math.isfinite(y)]
    x, y = _scale(xs, _LEFT, _WIDTH - _RIGHT, 0.0), _scale(ys, _HEIGHT - _BOTTOM, _TOP, 0.04)
    body = [_text(_LEFT, 14, y_label, "start", bold=True)]
    for tick in ticks(*_extent(ys, 0.04), 6):
        body.append(f'<path d="M{_LEFT} {number(y(tick))}H{_WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity=".15"/>')
        body.append(_text(_LEFT - 7, y(tick) + 4, f"{tick:g}", "end"))
    shown = sorted(set(xs))
    for tick in shown if len(shown) <= 12 else ticks(*_extent(xs, 0.0)):
        body.append(_text(x(tick), _HEIGHT - _BOTTOM + 17, f"{tick:,.10g}"))
    body.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, x_label))
    for i, curve in enumerate(curves):
        points = [(x(at), y(v), y(lo), y(hi)) for at, v, lo, hi in
                  zip(curve.x, curve.y, curve.low, curve.high, strict=True) if math.isfinite(v)]  # fmt: skip
        band = [(a, high) for a, _, _, high in points] + [(a, low) for a, _, low, _ in reversed(points)]
        last = f"{curve.label}: {curve.y[-1]:.4g} at {curve.x[-1]:g}" if curve.x else curve.label
        body.append(f'<g fill="{_colour(i)}" stroke="{_colour(i)}"><title>{escaped(last)}</title>')
        body.append(f'<path stroke="none" fill-opacity=".1" d="{_path(band)}Z"/>' if len(points) > 1 else "")
        body.append(f'<path fill="none" stroke-width="1.8"{_dash(i)} d="{_path((a, b) for a, b, *_ in points)}"/>')
        if len(points) <= 12:
            body += [f'<circle cx="{number(a)}" cy="{number(b)}" r="3" stroke="none"/>' for a, b, *_ in points]
        body.append("</g>")
    legend, height = _legend([curve.label for curve in curves])
    return document("".join(body) + legend, _WIDTH, height, f"{y_label} against {x_label.lower()}")


def strips(rows: Sequence[tuple[str, Cell]], label: str) -> str:
    """For each row one dot per seed, the quartiles as a bar, the median as a line, the published number as a ring."""
    ys = [value for _, cell in rows for value in cell.finite]
    ys += [cell.reference.value for _, cell in rows if cell.reference]
    left = 14 + max((7 * len(name) for name, _ in rows), default=0)
    bottom = _TOP + 22.0 * len(rows)
    x = _scale(ys, left + 6, _WIDTH - _RIGHT, 0.02)
    body = [_text(left, 14, label, "start", bold=True)]
    for tick in ticks(*_extent(ys, 0.02)):
        body.append(f'<path d="M{number(x(tick))} {_TOP - 6}V{number(bottom)}" stroke="currentColor" stroke-opacity=".15"/>')
        body.append(_text(x(tick), bottom + 16, f"{tick:g}"))
    for i, (name, cell) in enumerate(rows):
        at = _TOP + 22 * i + 9
        low, high = quartiles(cell.finite)
        middle = x(statistics.median(cell.finite))
        body.append(_text(left - 6, at + 4, name, "end"))
        body.append(f"<g><title>{escaped(f'{name}: {cell.show()}, quartiles {low:.4g} and {high:.4g}')}</title>")
        bar = f'stroke="{_COLOURS[0]}" stroke-opacity=".3" stroke-width="14"'
        body.append(f'<path d="M{number(x(low))} {at}H{number(x(high))}" {bar}/>')
        for j, value in enumerate(cell.finite):
            place = f'cx="{number(x(value))}" cy="{number(at + 4 * (j % 3 - 1))}"'
            body.append(f'<circle {place} r="2.4" fill="{_COLOURS[0]}" fill-opacity=".55"/>')
        body.append(f'<path d="M{number(middle)} {at - 8}v16" stroke="currentColor" stroke-width="2"/>')
        if cell.reference:
            ring = f'cx="{number(x(cell.reference.value))}" cy="{at}" r="4.5"'
            body.append(f'<circle {ring} fill="none" stroke="{_COLOURS[3]}" stroke-width="1.8"/>')
        body.append("</g>")
    return document("".join(body), _WIDTH, bottom + 26, f"Distribution over the seeds: {label}")


def beside(drawings: Sequence[str], title: str) -> str:
    """Drawings side by side under a title, as one."""
    heights = [float(drawing.split('height="', 1)[1].split('"', 1)[0]) for drawing in drawings]
    body = [_text(12, 20, title, "start", bold=True)]
    for i, drawing in enumerate(drawings):
        body.append(drawing.replace("<svg ", f'<svg x="{number(i * _WIDTH)}" y="30" ', 1))
    return document("".join(body), _WIDTH * len(drawings), max(heights, default=0) + 30, title)


def document(body: str, width: float, height: float, title: str) -> str:
    """One self-contained drawing whose ink is the page's."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}"><style>{_STYLE}</style><title>{escaped(title)}</title>{body}</svg>'
    )


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """At most about `count` round numbers from low to high.

    >>> ticks(0, 10), ticks(61.2, 68.9)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [62.0, 64.0, 66.0, 68.0])
    """
    span = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if span / (power * factor) <= count * 1.001)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


class _scale:  # noqa: N801
    """From the extent of some numbers, with a little room, to pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float, room: float) -> None:
        self.low, high = _extent(values, room)
        self.start, self.factor = start, (end - start) / (high - self.low or 1.0)

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) * self.factor


def _extent(values: Sequence[float], room: float) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    pad = room * (high - low) if high > low else 0.5
    return low - pad, high + pad


def escaped(content: str) -> str:
    return escape(visible(content))


def number(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.1f}".removesuffix(".0")


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(a)} {number(b)}" for a, b in points)


def _colour(i: int) -> str:
    return _COLOURS[i % len(_COLOURS)]


def _dash(i: int) -> str:
    dash = _DASHES[i % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _legend(labels: Sequence[str]) -> tuple[str, float]:
    """Names with a piece of their lines, in as many rows as they need; and the height that the drawing has with them."""
    x, y, body = _LEFT, _HEIGHT + 14, []
    for i, label in enumerate(labels):
        width = 34 + 7 * len(label) + 12
        if x > _LEFT and x + width > _WIDTH:
            x, y = _LEFT, y + 18
        line = f'<path d="M{number(x)} {number(y - 4)}h26" fill="none" stroke="{_colour(i)}" stroke-width="2"{_dash(i)}/>'
        body += [line, _text(x + 31, y, label, "start")]
        x += width
    return "".join(body), y + 10


def _text(x: float, y: float, content: str, anchor: str = "middle", *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ' opacity=".8"'
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" font-size="12"{weight}>{escaped(content)}</text>'
