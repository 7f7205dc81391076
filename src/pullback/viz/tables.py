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

    def rich(self, width: int | None = None) -> RichTable:
        """For `rich`, to be printed with `crop=False`. No word is broken; if `width` is too small, a row is several lines."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        widths = self._widths(width)
        if width is not None and _with_space(widths) > width and len(widths) > 2:
            return self._stacked().rich(width)
        table = RichTable(
            title=self.title, title_justify="left", box=box.SIMPLE_HEAD, caption="\n".join(self.notes) or None,
            caption_justify="left", width=_with_space(widths),
        )  # fmt: skip
        for i, (name, each) in enumerate(zip(self.columns, widths, strict=True)):
            table.add_column(name, width=each, justify="right" if i else "left")
        for row in self.rows:
            if len(row) == 1:
                table.add_row(Text(row[0], style="italic"))
            else:
                table.add_row(*(Text(cell, style="yellow" if "≠" in cell else "") for cell in row))
        return table

    def _stacked(self) -> Table:
        """Each row as its name, and a line for each cell that is not empty."""
        rows = []
        for name, *cells in self.rows:
            rows += [[name], *([label, cell] for label, cell in zip(self.columns[1:], cells, strict=False) if cell)]
        return Table(self.title, [self.columns[0], ""], rows, self.notes)

    def _widths(self, width: int | None) -> list[int]:
        """Of the columns: the widest is made narrower until all fit, but never narrower than its longest word."""
        from rich.cells import cell_len

        columns = [[name, *(row[i] for row in self.rows if i < len(row))] for i, name in enumerate(self.columns)]
        widths = [max(map(cell_len, cells)) for cells in columns]
        least = [max(cell_len(word) for cell in cells for word in (cell.split() or [""])) for cells in columns]
        while width is not None and _with_space(widths) > width:
            wider = [i for i in range(len(widths)) if widths[i] > least[i]]
            if not wider:
                break
            widths[max(wider, key=widths.__getitem__)] -= 1
        return widths


def _with_space(widths: list[int]) -> int:
    """The width of a table with the space between its columns."""
    return sum(widths) + 3 * len(widths) + 1


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(cell: str) -> str:
    """A star that marks a row is not emphasis."""
    return "\\" + cell if cell.startswith("*") else cell
