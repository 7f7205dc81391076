"""A results table: rows of cells under columns, rendered as text, Markdown, JSON and a figure of the distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pullback.viz import Table as TextTable
from pullback_study.results.cells import Cell, quartiles, share
from pullback_study.runs.files import as_json

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from pullback_study.results.figures import Figure


def middle(cell: Cell) -> str:
    """The value with its spread, marked with ≠ where it differs from the published one."""
    return cell.show() + "≠" * cell.differs


def interval(cell: Cell) -> str:
    low, high = cell.interval[1:]
    return f"[{low:.{cell.digits}f}, {high:.{cell.digits}f}]" if math.isfinite(low) else ""


def quarters(cell: Cell) -> str:
    return " to ".join(f"{each:.{cell.digits}f}" for each in quartiles(cell.finite)) if cell.finite else ""


def at_least(least: float) -> Callable[[Cell], str]:
    """The share of the seeds that reach `least`, with its 95% interval; a run that diverged does not."""
    return lambda cell: "{:.0%} [{:.0%}, {:.0%}]".format(*share(cell.values, least)) if cell.values else ""


@dataclass(frozen=True)
class Column:
    """A column: which cells or texts of the rows it shows, and how; with `of`, what it makes of a row that was chosen."""

    name: str
    label: str
    reference: bool = False  # whether the published numbers stand beside it
    show: Callable[[Cell], str] = middle
    of: Callable[[Any], Cell | str | None] = lambda row: None  # None: nothing


@dataclass(frozen=True)
class Row:
    """A row: numbers and words by the names of columns; an empty cell is shown as `not run`."""

    label: str
    cells: Mapping[str, Cell]
    texts: Mapping[str, str] = field(default_factory=dict)
    heading: str = ""
    name: str = ""  # on the command line
    note: str = ""  # more about it, such as its chosen setting


@dataclass(frozen=True)
class Table:
    """Rows under columns, with a caption that says what is in it."""

    title: str
    columns: Sequence[Column]  # after the first, which names the rows
    rows: Sequence[Row]  # those of one heading are next to each other
    notes: Sequence[str] = ()  # lines below the table
    name: str = ""  # of its files
    warning: str = ""  # why the numbers must not be taken at face value
    command: str = ""  # makes all of its runs
    first: str = "Model"  # the heading of the first column

    @classmethod
    def of_words(
        cls, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = (), **more: Any
    ) -> Table:
        """A table without numbers of runs."""
        lines = [Row(name, {}, dict(zip(columns[1:], words, strict=True))) for name, *words in rows]
        return cls(title, [Column(name, name) for name in columns[1:]], lines, notes, first=columns[0], **more)

    @property
    def runs(self) -> int:
        """How many runs are behind it."""
        return len({run for row in self.rows for cell in row.cells.values() for run in cell.runs})

    @property
    def complete(self) -> bool:
        """Whether no cell lacks its runs."""
        return all(cell.values for row in self.rows for cell in row.cells.values())

    @property
    def headings(self) -> list[str]:
        """Of all columns, the first and those of published numbers included."""
        return [self.first, *(label for column in self.columns for label in [column.label, "paper"][: 1 + column.reference])]

    @property
    def caption(self) -> list[str]:
        """The notes, after what ± and ≠ mean here."""
        shown = [row.cells[column.name] for column in self.columns if column.show is middle for row in self.rows
                 if column.name in row.cells]  # fmt: skip
        words = sorted({cell.summary.words for cell in shown if cell.count > 1})
        counts = sorted({cell.count for cell in shown if cell.count})
        range_ = " to ".join(map(str, [*counts[:1], *counts[1:][-1:]]))
        seeds = f"{range_} seed{'s' * (range_ != '1')}" if counts else ""
        found = [f"±: {' or '.join(words)} over {seeds}."] if words else [f"{seeds.capitalize()}."] if seeds else []
        if any(row.cells[column.name].judged for column in self.columns if column.reference for row in self.rows
               if column.name in row.cells):  # fmt: skip
            found.append("≠: ours and the published number differ by more than both spreads together.")
        return [*found, *self.notes, *([self.warning] if self.warning else [])]

    def text(self) -> TextTable:
        """As words, for the terminal and for Markdown."""
        lines: list[list[str]] = []
        heading = ""
        for row in self.rows:
            if row.heading != heading:
                heading = row.heading
                lines.append([heading])
            lines.append([row.label, *(text for column in self.columns for text in shown(row, column))])
        return TextTable(self.title, self.headings, lines, self.caption)

    def markdown(self) -> str:
        return self.text().markdown()

    def rich(self, width: int | None = None) -> RichTable:
        return self.text().rich(width)

    def json(self) -> str:
        cells = [{name: cell.json() for name, cell in row.cells.items()} for row in self.rows]
        rows = [{**vars(row), "cells": each} for row, each in zip(self.rows, cells, strict=True)]
        return as_json({"title": self.title, "notes": self.caption, "rows": rows}, indent=1)

    def distribution(self, column: str) -> Figure:
        """One line per row, one dot per seed."""
        from pullback_study.results.figures import Curve, Figure, Panel

        label = next(each.label for each in self.columns if each.name == column)
        cells = {row.label: row.cells[column] for row in self.rows if column in row.cells and row.cells[column].finite}
        rows = [Curve(name, [seed or 0 for seed in cell.seeds], cell.values, reference=cell.reference and cell.reference.value)
                for name, cell in cells.items()]  # fmt: skip
        return Figure(self.title, [Panel(column, label, "", rows, strips=True)], f"{self.name}-{column}")


def shown(row: Row, column: Column) -> list[str]:
    """The words of a row under a column, and the published number beside it where the column has those."""
    cell = row.cells.get(column.name)
    found = row.texts.get(column.name, "") if cell is None else column.show(cell)
    return [found, cell.show_reference() if cell else ""][: 1 + column.reference]
