"""The families of paths through a directed acyclic graph: its edges are the parts, or, on a grid, its cells."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Flat, Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP

# only the largest has a goal, so that errors need not mention it
_SIZES = {shape: (Size("lengths", bounds=shape[0], told=False),) for shape in ("E", "n, m")}


class OnPaths(Layout):
    """The layout of a graph some of whose edges are on no path: these are no parts. Inference reads 0 for their scores.

    Args:
        used: whether each edge is on a path, `[E]` of bool.
    """

    def __init__(self, used: Tensor) -> None:
        super().__init__("ShortestPath", "E", sizes=_SIZES["E"], parts=self._on_paths)
        self._used = {used.device: used}

    def flatten(self, scores: Tensor, owner: object) -> Flat:
        flat = super().flatten(scores, owner)
        flat.scores = torch.where(self._on_paths(tuple(flat.scores.shape[1:]), flat.sizes, scores.device), flat.scores, 0.0)
        return flat

    def _on_paths(self, shape: tuple[int, ...], sizes: Sequence[Tensor], device: torch.device) -> Tensor:
        used = self._used.get(device)
        if used is None:
            used = self._used[device] = next(iter(self._used.values())).to(device)
        check_shape(shape, tuple(used.shape))
        return used


def check_shape(shape: tuple[int, ...], own: tuple[int, ...]) -> None:
    """Raise if scores of this shape are not those of a graph with parts of its own."""
    if shape != own:
        given, known = (", ".join(map(str, x)) for x in (shape, own))
        raise ValueError(f"scores has shape [..., {given}]; the parts of this ShortestPath are [{known}]")


def _family(part: str, shape: str) -> Family:
    layout = Layout("ShortestPath", shape, sizes=_SIZES[shape])

    def implementations(backend: str) -> Any:
        from pullback.inference.engine.hypergraph.backends import functions
        from pullback.inference.shortest_path.network import graph
        from pullback.inference.shortest_path.reference import value

        return functions(backend, layout, graph, value, _most_parts)

    return Family(
        f"shortest_path_{part}s", layout, implementations=implementations,
        nouns=Nouns(structure="path", part=part), options={"network": int},
        operations=STANDARD + FUSED + SPARSEMAP, most_parts=_most_parts,
    )  # fmt: skip


LONGEST: dict[int, int] = {}
"""The most parts of a path of each network, by its number."""


def _most_parts(shape: tuple[int, ...], network: int) -> int:
    number = operator.index(network)  # which torch.compile may have replaced by a symbol
    found = LONGEST.get(number)  # it reads a dict, but does not trace `known`
    if found is None:
        from pullback.inference.shortest_path.network import known

        return known(number).longest
    return found


EDGES, CELLS = _family("edge", "E"), _family("cell", "n, m")
