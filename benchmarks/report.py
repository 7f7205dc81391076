"""The rows as tables for people (terminal and Markdown) and as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import OURS, Row
from benchmarks.timing import Timing


def cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """The headings of the columns that any row fills, and the rows under them."""
    table = [_cells(row) for row in rows]
    headings = list(dict.fromkeys(heading for row in table for heading in row))
    if "note" in headings:
        headings.append(headings.pop(headings.index("note")))
    return headings, [[row.get(heading, "") for heading in headings] for row in table]


def _cells(row: Row) -> dict[str, str]:
    found = {"": row.case, "threads": str(row.threads)}
    if row.ours is not None:
        found[f"{OURS}, ms"] = str(row.ours)
    for name, timing in row.peers.items():
        ratio = f" ({times(timing.median / row.ours.median)})" if row.ours else ""
        found[f"{name}, ms"] = f"{timing}{ratio}"
    if row.ratio is not None:
        found["ratio to the fastest"] = times(row.ratio)
    if row.difference is not None:
        found["largest difference"] = f"{row.difference:.1e}"
    for name, figure in row.figures.items():
        found[name] = _figure(figure)
    if row.note:
        found["note"] = row.note.strip()
    return found


def line(row: Row) -> str:
    """A row by itself, for progress."""
    return ", ".join(f"{heading}: {cell}" if heading else cell for heading, cell in _cells(row).items())


def times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.2g}x"


def _figure(figure: Timing | float | str) -> str:
    if isinstance(figure, float):
        return f"{figure:.0f}" if figure == round(figure, 6) and abs(figure) < 1e6 else f"{figure:.3g}"
    return str(figure)


def show(title: str, about: str, rows: Sequence[Row]) -> None:
    """Print a benchmark's table, with rich where it is installed."""
    headings, body = cells(rows)
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(f"\n{title}: {about}\n{plain(headings, body)}", flush=True)
        return
    table = Table(title=title, caption=about, caption_justify="left", title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("", "note") else "right")
    for line in body:
        table.add_row(*line)
    console = Console()
    if not console.is_terminal:
        console.width = 200
    console.print(table)


def plain(headings: list[str], body: list[list[str]]) -> str:
    """A table in aligned columns."""
    lines = [headings, *body]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def markdown(environment: dict[str, str], command: str, sections: Mapping[str, tuple[str, Sequence[Row]]]) -> str:
    """Everything as Markdown: how it was measured, then a section for each benchmark."""
    text = [f"Measured with `{command}`.", "", "| | |", "|---|---|"]
    text += [f"| {name} | {value} |" for name, value in environment.items()]
    for title, (about, rows) in sections.items():
        headings, body = cells(rows)
        text += ["", f"### {title}", "", about, ""]
        text += [_line(headings), _line(["---"] * len(headings)), *map(_line, body)]
    return "\n".join(text) + "\n"


def _line(line: list[str]) -> str:
    return "| " + " | ".join(line) + " |"


def update_markdown(path: Path, text: str, device: str) -> None:
    """Put the text between a file's markers of a kind of device."""
    what = "benchmarks" if device == "cpu" else f"benchmarks on {device.split(':')[0]}"
    begin, end = f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
    page = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    if begin not in page or end not in page:
        raise SystemExit(f"{path} has no lines {begin!r} and {end!r} to write between; add them")
    before, rest = page.split(begin, 1)
    after = rest.split(end, 1)[1]
    path.write_text(f"{before}{begin}\n{text}{end}{after}")


def write_json(path: Path, environment: dict[str, str], command: str, rows: Sequence[Row]) -> None:
    """Everything in seconds: `environment`, `command` and `rows`, each row with its samples."""
    written = [{**dataclasses.asdict(row), "fastest": row.fastest, "ratio": row.ratio} for row in rows]
    whole: dict[str, Any] = {"environment": environment, "command": command, "rows": written}
    path.write_text(json.dumps(whole, indent=1) + "\n")
