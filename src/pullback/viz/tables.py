"""Tables, for the terminal and for Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclass
class Table:
    """Rows of cells under headings; the first column is text, the others are numbers.

    Args:
        title: above the table.
        columns: the headings.
        rows: the cells of each row; a row of one cell is a heading for those that follow.
        notes: lines below the table.

    >>> print(Table("Squares", ["n", "square"], [["two", "4"]]).markdown())
    **Squares**
    <BLANKLINE>
    | n | square |
    |---|---:|
    | two | 4 |
    """

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", _line(self.columns), "|---|" + "---:|" * (len(self.columns) - 1)]
        for row in self.rows:
            heading = [f"*{row[0]}*"] + [""] * (len(self.columns) - 1)
            lines.append(_line(heading if len(row) == 1 else [_escaped(cell) for cell in row]))
        if self.notes:
            lines += ["", *(_escaped(note) for note in self.notes)]
        return "\n".join(lines)

    def rich(self) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=self.title, title_justify="left", box=box.SIMPLE_HEAD, caption="\n".join(self.notes) or None,
            caption_justify="left",
        )  # fmt: skip
        rows = [row for row in self.rows if len(row) > 1]
        widest = max((len(row[0]) for row in rows), default=0)
        table.add_column(self.columns[0], min_width=min(widest, _NAMES), overflow="fold")
        for name in self.columns[1:]:
            table.add_column(name, justify="right", overflow="fold")
        for row in self.rows:
            if len(row) == 1:
                table.add_row(Text(row[0], style="italic"))
            else:
                table.add_row(*(Text(cell, style="yellow" if "≠" in cell else "") for cell in row))
        return table


_NAMES = 14  # of a name that many characters stay together, however narrow the terminal


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(cell: str) -> str:
    """A star that marks a row is not emphasis."""
    return "\\" + cell if cell.startswith("*") else cell
