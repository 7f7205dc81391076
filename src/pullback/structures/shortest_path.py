"""Paths through directed acyclic graphs, and through grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from pullback.inference.front.family import Family
from pullback.inference.front.layout import Layout
from pullback.inference.shortest_path.family import CELLS, EDGES
from pullback.structures.family import FamilyStructure
from pullback.structures.readers import check_range, is_padding, is_readable, ones_at, tuples

if TYPE_CHECKING:
    from pullback.inference.shortest_path.network import Network

MOVES = {"any": ((1, 1), (1, 0), (0, 1)), "straight": ((1, 0), (0, 1))}
"""Steps down and to the right, in the order that decides ties."""


class ShortestPath(FamilyStructure):
    """The paths from a source to a target through a directed acyclic graph, as 0/1 vectors `[..., E]`: one entry per edge.

    `z[e] = 1` for the edges on the path. Scores are maximised: for a shortest path they are minus the lengths, which may have
    any sign. All operations take O(E). A score of `-inf` forbids an edge. Edges that are on no path are no parts: their scores
    may be anything, NaN included. `ShortestPath.grid` has the cells of a grid as parts instead.

    Ties in the argmax: from the target back, the first of the edges that lead to a node.

    Args:
        edges: integers `[E, 2]`, the tail and the head of each; nodes are any integers of at least 0. Several edges may join
            the same two nodes. A cycle is an error, wherever it is.
        source: the node where paths begin.
        target: the node where they end. If it is the source, the path without edges is the only one.
        validate: check the values of the scores; costs a synchronisation on a GPU. The default is to check on a CPU only.

    >>> paths = ShortestPath([(0, 1), (0, 2), (1, 3), (2, 3)], source=0, target=3)
    >>> lengths = torch.tensor([1.0, 2.0, 3.0, 1.0])
    >>> paths.path(paths.argmax(-lengths))
    [0, 2, 3]
    """

    family: ClassVar[Family] = EDGES
    lengths: ClassVar[None] = None

    def __init__(self, edges: Any, source: int, target: int, *, validate: bool | None = None) -> None:
        from pullback.inference.shortest_path.network import of_edges  # which takes a compiler

        super().__init__(validate=validate)
        given, self.source, self.target = _edges(edges), _node(source, "source"), _node(target, "target")
        self._network, self.edges = of_edges(given, self.source, self.target), torch.from_numpy(given)
        self._names = self.edges.unique()
        places = torch.searchsorted(self._names, self.edges)
        self._codes, self._order = (places[:, 0] * len(self._names) + places[:, 1]).sort(stable=True)

    @staticmethod
    def grid(n: int, m: int, moves: str = "any", *, validate: bool | None = None) -> GridPath:
        """The paths from the first to the last cell of an n x m grid, as 0/1 matrices `[..., n, m]`; see `GridPath`."""
        return GridPath(n, m, moves, validate=validate)

    @property
    def network(self) -> int:
        """The graph as the operators know it."""
        return self._network.number

    @property
    def _layout(self) -> Layout:  # type: ignore[override]
        return self._network.layout

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        return super()._log_prob(scores, self._cleaned(z))

    def __repr__(self) -> str:
        return f"ShortestPath({len(self.edges)} edges, source={self.source}, target={self.target})"

    def path(self, z: Tensor) -> list[Any]:
        """The nodes of each path in order, from the source to the target, as lists, nested like the batch."""
        if z.dim() > self.event_dims:
            return [self.path(one) for one in z]
        self.family.layout.check(z, "z")
        following = dict(self.edges[torch.nonzero(z > 0.5).squeeze(1).cpu()].tolist())
        nodes = [self.source]
        while nodes[-1] in following:
            nodes.append(following.pop(nodes[-1]))
        return nodes

    def from_path(self, path: Any) -> Tensor:
        """The structures `[..., E]` of lists of nodes, from the source to the target: the inverse of `path`.

        Args:
            path: lists of nodes, nested like the batch, or integers `[..., S]`, with -1 or -100 behind the target. Where
                several edges join two nodes, the first of them is taken.
        """
        x = path if isinstance(path, Tensor) else tuples(_tupled(path), 1, "a ShortestPath", "path").squeeze(-1)
        real = ~is_padding(x)
        if x.shape[-1] == 0:
            raise ValueError(f"path is empty; it must lead from the source {self.source} to the target {self.target}")
        if is_readable(x):
            ends = x.gather(-1, (real.sum(-1, keepdim=True) - 1).clamp_min(0)).squeeze(-1)
            if not bool(((x[..., 0] == self.source) & (ends == self.target)).all()):
                raise ValueError(f"path does not lead from the source {self.source} to the target {self.target} everywhere")
        names, codes, order = (each.to(x.device) for each in (self._names, self._codes, self._order))
        if len(names) == 0:
            return torch.zeros(*x.shape[:-1], 0, device=x.device)
        place = torch.searchsorted(names, x.contiguous()).clamp_max(len(names) - 1)
        code = place[..., :-1] * len(names) + place[..., 1:]
        found = torch.searchsorted(codes, code.contiguous()).clamp_max(len(codes) - 1)
        steps = real[..., 1:]
        if is_readable(x):
            wrong = steps & ((codes[found] != code) | (names[place] != x)[..., 1:])
            if wrong.any():
                *where, step = torch.nonzero(wrong)[0].tolist()
                tail, head = x[(*where, slice(step, step + 2))].tolist()
                raise ValueError(f"path{[*where, step + 1]} is {head}; no edge leads to it from {tail}")
        return ones_at(order[found], steps, len(self.edges))

    def enumerate(self) -> Tensor:  # type: ignore[override]
        """All paths, `[S, E]`, by following every edge."""
        leaving: dict[int, list[tuple[int, int]]] = {}
        for edge, (tail, head) in enumerate(self.edges.tolist()):
            leaving.setdefault(tail, []).append((edge, head))

        def paths(node: int) -> Iterator[list[int]]:
            if node == self.target:
                yield []
            for edge, head in leaving.get(node, []):
                yield from ([edge, *rest] for rest in paths(head))

        found = list(paths(self.source))
        z = torch.zeros(len(found), len(self.edges))
        for row, edges in enumerate(found):
            z[row, edges] = 1.0
        return z


class GridPath(ShortestPath):
    """The paths from the first to the last cell of an n x m grid, as 0/1 matrices `[..., n, m]`: `ShortestPath.grid`.

    `z[i, j] = 1` for the cells on the path, the first and the last among them. With `moves="any"` a path goes down, right or
    diagonally down and right; with `moves="straight"` down or right. Paths never go back up or left: the graph has no cycles.

    Ties in the argmax: from the last cell back, the diagonal move, then down, then right.

    >>> grid = ShortestPath.grid(2, 3)
    >>> grid.path(grid.argmax(torch.tensor([[0.0, -9.0, 0.0], [0.0, -1.0, 0.0]])))
    [(0, 0), (1, 1), (1, 2)]
    """

    family: ClassVar[Family] = CELLS

    def __init__(self, n: int, m: int, moves: str = "any", *, validate: bool | None = None) -> None:
        from pullback.inference.shortest_path.network import of_cells

        FamilyStructure.__init__(self, validate=validate)
        if not isinstance(moves, str) or moves not in MOVES:
            raise ValueError(f"moves is {moves!r}; it must be one of {', '.join(map(repr, MOVES))}")
        self.n, self.m, self.moves = _node(n, "n", least=1), _node(m, "m", least=1), moves
        self._network: Network = of_cells(self.n, self.m, MOVES[moves])

    def __repr__(self) -> str:
        return f"ShortestPath.grid({self.n}, {self.m}, {self.moves!r})"

    def path(self, z: Tensor) -> list[Any]:
        """The cells of each path in order, as lists of (row, column), nested like the batch."""
        return self._listed(z)

    def from_path(self, path: Any) -> Tensor:
        """The structures `[..., n, m]` of paths of cells (row, column): the inverse of `path`.

        Args:
            path: lists of tuples, nested like the batch, or integers `[..., S, 2]`, with -1 or -100 for no cell.
        """
        x = tuples(path, 2, "a ShortestPath.grid", "path")
        row, column = x.unbind(-1)
        real = ~is_padding(row)
        check_range(row, real, self.n - 1, "the row of path", "rows are from 0 to {last}", last=self.n - 1)
        check_range(column, real, self.m - 1, "the column of path", "columns are from 0 to {last}", last=self.m - 1)
        return ones_at(row * self.m + column, real, self.n * self.m).reshape(*x.shape[:-2], self.n, self.m)

    def enumerate(self) -> Tensor:  # type: ignore[override]
        """All paths, `[S, n, m]`, by trying every move; n + m up to 12 or so."""
        return torch.stack(list(_grid_paths(self.n - 1, self.m - 1, MOVES[self.moves], torch.zeros(self.n, self.m))))


def _grid_paths(row: int, column: int, steps: tuple[tuple[int, int], ...], z: Tensor) -> Iterator[Tensor]:
    """All paths to a cell, each with the cells of z."""
    z = z.clone()
    z[row, column] = 1.0
    if row == column == 0:
        yield z
    for down, right in steps:
        if row >= down and column >= right:
            yield from _grid_paths(row - down, column - right, steps, z)


def _edges(edges: Any) -> np.ndarray:
    """Edges as int64 `[E, 2]`."""
    try:
        found = np.asarray(edges.detach().cpu() if isinstance(edges, Tensor) else edges)
    except ValueError:
        raise ValueError("edges is nested unevenly; a ShortestPath needs [E, 2]: the tail and the head of each edge") from None
    found = found.reshape(-1, 2) if found.size == 0 else found
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(
            f"edges has shape {list(found.shape)}; a ShortestPath needs [E, 2]: the tail and the head of each edge"
        )
    if found.size and found.dtype.kind not in "iu":
        raise TypeError(f"edges have dtype {found.dtype}; they must be integers")
    found = np.array(found, np.int64)
    if (found < 0).any():
        edge = int(np.flatnonzero((found < 0).any(1))[0])
        raise ValueError(f"edges[{edge}] is {found[edge].tolist()}; nodes are integers of at least 0")
    return found


def _node(value: Any, name: str, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be an integer of at least {least}")
    return int(value)


def _tupled(path: Any) -> Any:
    """Lists of nodes as lists of tuples of one node."""
    return [(each,) if isinstance(each, int) else _tupled(each) for each in path] if isinstance(path, list) else path
