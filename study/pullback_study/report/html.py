"""Pieces of HTML from the results model. Whatever comes from data becomes text, never markup."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from pullback.viz import visible
from pullback_study.results.figures import Figure
from pullback_study.results.paper.verdicts import Claim, Verdict
from pullback_study.results.tables import Column, Row, Table

_SIGNS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.OPEN: "?"}


def esc(text: object) -> str:
    r"""Any text as content or as a quoted attribute; control characters and direction marks become visible escapes.

    >>> esc('<b> "\x1b')
    '&lt;b&gt; &quot;\\x1b'
    """
    return html.escape("\n".join(visible(line) for line in str(text).split("\n")))


def command(text: str) -> str:
    """A command line, selected as a whole by a click."""
    return f'<code class="command">{esc(text)}</code>' if text else ""


def notes(lines: Iterable[str]) -> str:
    return "".join(f'<p class="quiet">{esc(line)}</p>' for line in lines)


def groups(panels: Sequence[tuple[str, str]], first: int = 0) -> str:
    """Bodies under titles, of which one is open; the others open by a click."""
    return "".join(f'<details class="group"{" open" * (i == first)}><summary>{esc(title)}</summary>{body}</details>'
                   for i, (title, body) in enumerate(panels))  # fmt: skip


Cells = Sequence[tuple[str, object]]
"""A row of a table: the HTML of each cell, and what it is sorted by (a number, a text, or None for nothing)."""


def sortable(title: str, columns: Sequence[str], rows: Sequence[Cells | str], kind: str = "plain") -> str:
    """A table that sorts by a click on a heading; a row that is a text is a heading for the rows that follow."""
    head = "".join(f'<th scope="col" aria-sort="none"><button type="button">{esc(name)}</button></th>' for name in columns)
    lines = ""
    for row in rows:
        if isinstance(row, str):
            lines += f'<tr class="kind"><th colspan="{len(columns)}">{esc(row)}</th></tr>'
            continue
        keys = ["" if key is None else f' data-by="{esc(key)}"' for _, key in row]
        cells = [f"<td{key}>{shown}</td>" for (shown, _), key in zip(row, keys, strict=True)]
        lines += f'<tr><th scope="row"{keys[0]}>{row[0][0]}</th>{"".join(cells[1:])}</tr>'
    body = f"<caption>{esc(title)}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody>"
    return scrolled(f'<table class="{kind}">{body}</table>', title)


def scrolled(body: str, label: str) -> str:
    """Something wide, which scrolls by itself and says so."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(label)}">{body}</div>'


def table(found: Table) -> str:
    """A results table; a number opens to the runs behind it."""
    rows: list[Cells | str] = []
    heading = ""
    for row in found.rows:
        if row.heading != heading:
            heading = row.heading
            rows.append(heading or " ")
        name = esc(row.label) + (f' <span class="quiet">{esc(row.note)}</span>' if row.note else "")
        rows.append([(name, row.label), *(cell for column in found.columns for cell in _cells(row, column))])
    missing = sum(not cell.values for row in found.rows for cell in row.cells.values())
    making = f"<p>This command makes the missing runs: {command(found.command)}</p>" if missing and found.command else ""
    return sortable(found.title, found.headings, rows, "results") + notes(found.caption) + making


def _cells(row: Row, column: Column) -> Cells:
    cell = row.cells.get(column.name)
    if cell is None:
        words = row.texts.get(column.name, "")
        return [(esc(words), words or None), ("", None)][: 1 + column.reference]
    text = esc(column.show(cell))
    if cell.differs and text.endswith("≠"):
        text = f'{text[:-1]}<b class="differs">≠</b>'
    if cell.runs:
        behind = [f"seed {seed}: {value:.{cell.digits}f}, run {run[:8]}"
                  for seed, value, run in zip(cell.seeds, cell.values, cell.runs, strict=True)]  # fmt: skip
        behind += [f"difference from the paper: {cell.difference:+.{cell.digits}f}"] if cell.reference else []
        text = f'<details class="number"><summary>{text}</summary><pre>{esc(chr(10).join(behind))}</pre></details>'
    reference = (esc(cell.show_reference()), cell.reference.value if cell.reference else None)
    return [(text, cell.value if cell.finite else None), reference][: 1 + column.reference]


def figure(found: Figure) -> str:
    drawing = base64.b64encode(found.svg().encode()).decode()
    shown = f'<img alt="{esc(found.title)}" src="data:image/svg+xml;base64,{drawing}">'
    return f"<figure>{shown}{notes([found.note])}</figure>"


def badge(verdict: Verdict) -> str:
    sign = f'<span aria-hidden="true">{_SIGNS[verdict]} </span>'
    return f'<span class="badge" data-verdict="{verdict.value}">{sign}{verdict.value}</span>'


def claim(found: Claim) -> str:
    """A verdict, which opens to what it rests on."""
    rows = "".join(
        f'<tr><th scope="row">{esc(each.statement)}</th><td>{esc(each.evidence)}</td><td>{badge(each.verdict)}</td></tr>'
        for each in found.findings
    )
    head = "<tr><th>Part</th><th>Found, with its 95% interval</th><th>Verdict</th></tr>"
    table = f'<table class="evidence"><thead>{head}</thead><tbody>{rows}</tbody></table>'
    return (
        f'<details class="claim" id="claim-{found.number}"><summary><span class="ordinal">{found.number}</span>'
        f'<span class="words">{esc(found.claim)}</span>{badge(found.verdict)}</summary>'
        f'<div class="inside"><p>{esc(found.rule)}</p>{scrolled(table, f"Evidence for claim {found.number}")}</div></details>'
    )
