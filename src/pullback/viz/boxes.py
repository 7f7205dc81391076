"""Lines made of box-drawing characters, and the levels of spans that are drawn above each other."""

from __future__ import annotations

from collections.abc import Iterable

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_GLYPHS = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"  # indexed by the sum of the arms that leave a cell


class Boxes:
    r"""A grid of cells; lines that meet in a cell join.

    >>> boxes = Boxes(2, 5)
    >>> boxes.horizontal(0, 0, 4)
    >>> boxes.vertical(2, 0, 1)
    >>> boxes.put(1, 2, "▼")
    >>> print(*boxes.rows(), sep="\n")
    ╶─┬─╴
      ▼
    """

    def __init__(self, height: int, width: int) -> None:
        self._arms = [[0] * width for _ in range(height)]
        self._characters: dict[tuple[int, int], str] = {}

    def horizontal(self, row: int, start: int, end: int) -> None:
        for column in range(start, end):
            self._arms[row][column] |= _RIGHT
            self._arms[row][column + 1] |= _LEFT

    def vertical(self, column: int, start: int, end: int) -> None:
        for row in range(start, end):
            self._arms[row][column] |= _DOWN
            self._arms[row + 1][column] |= _UP

    def put(self, row: int, column: int, character: str) -> None:
        """A character that hides the lines below it."""
        self._characters[row, column] = character

    def rows(self) -> list[str]:
        return [
            "".join(self._characters.get((i, j), _GLYPHS[arms]) for j, arms in enumerate(row))
            for i, row in enumerate(self._arms)
        ]


def levels_of(spans: Iterable[tuple[int, int]]) -> list[int]:
    """For spans with the inner ones first, the lowest levels (from 1) at which no two that touch share one."""
    placed: list[tuple[int, int, int]] = []
    for first, last in spans:
        below = [level for start, end, level in placed if start <= last and first <= end]
        placed.append((first, last, 1 + max(below, default=0)))
    return [level for _, _, level in placed]
