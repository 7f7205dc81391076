"""Monotone alignments of two sequences."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from pullback.inference.alignment.family import ALIGNMENT, MOVES
from pullback.inference.front.family import Family
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import check_range, is_padding, ones_at, tuples


class Alignment(FamilyStructure):
    """The monotone paths from cell (0, 0) to cell (n - 1, m - 1), as 0/1 matrices `[..., n, m]`.

    `z[i, j] = 1` for the cells on the path. Scores have the same layout. With `moves="any"` a path goes down, right or
    diagonally (dynamic time warping: scores are minus the costs). With `moves="forward"` it goes right or diagonally, so that
    each column has exactly one row and no row is skipped (the alignment search of text to speech); that needs n <= m.

    Rows and columns from an example's lengths on are padding and may hold anything, NaN included. A score of `-inf` forbids a
    cell. 0 x 0 has the empty path, 0 x m none. All operations take O(nm) time and memory.

    Ties in the argmax: from the last cell back, the diagonal move, then down, then right.

    Args:
        lengths: the number of rows of each example, `[...]`. The default is n for all.
        other_lengths: the number of columns. The default is m for all.
        moves: "any" or "forward".
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> scores = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    >>> Alignment(moves="forward").path(Alignment(moves="forward").argmax(scores))
    [(0, 0), (1, 1), (1, 2)]
    """

    family: ClassVar[Family] = ALIGNMENT

    def __init__(
        self, lengths: Any = None, other_lengths: Any = None, moves: str = "any", *, validate: bool | None = None
    ) -> None:
        super().__init__(validate=validate)
        if not isinstance(moves, str) or moves not in MOVES:
            raise ValueError(f"moves is {moves!r}; it must be one of {', '.join(map(repr, MOVES))}")
        self.lengths = self._as_lengths(lengths)
        self.other_lengths = self._as_lengths(other_lengths, "other_lengths")
        self.moves = moves

    def path(self, z: Tensor) -> list[Any]:
        """The cells of each path in order, as lists of (row, column), nested like the batch."""
        return self._listed(z)

    def from_path(self, path: Any, n: int, m: int) -> Tensor:
        """The structures `[..., n, m]` of paths of cells (row, column): the inverse of `path`.

        Args:
            path: lists of tuples, nested like the batch, or integers `[..., S, 2]`, with -1 or -100 for no cell.
            n: the number of rows.
            m: the number of columns.
        """
        x = tuples(path, 2, "an Alignment", "path")
        row, column = x.unbind(-1)
        real = ~is_padding(row)
        rows, columns = self._limit(x, n), self._limit(x, m, "other_lengths")
        check_range(row, real, rows - 1, "the row of path", "it must be at least 0, and less than the length")
        check_range(column, real, columns - 1, "the column of path", "it must be at least 0, and less than other_lengths")
        return ones_at(row * m + column, real, n * m).reshape(*x.shape[:-2], n, m)

    def enumerate(self, n: int, m: int) -> Tensor:  # type: ignore[override]
        """All paths, `[S, n, m]`, by trying every move; n + m up to 12 or so."""
        if n == 0 or m == 0:
            return torch.zeros(1 if n == m else 0, n, m)
        paths = [torch.zeros(n, m).index_put((rows, columns), torch.ones(())) for rows, columns in self._paths(n - 1, m - 1)]
        return torch.stack(paths) if paths else torch.zeros(0, n, m)

    def _paths(self, row: int, column: int) -> Any:
        """All paths to a cell, as tensors of their rows and columns."""
        here = torch.tensor([row]), torch.tensor([column])
        if row == column == 0:
            yield here
        for down, right in MOVES[self.moves]:
            if row >= down and column >= right and (row or column):
                for rows, columns in self._paths(row - down, column - right):
                    yield torch.cat([rows, here[0]]), torch.cat([columns, here[1]])
