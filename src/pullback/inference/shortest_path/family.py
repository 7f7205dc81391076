"""The families of paths through a directed acyclic graph: its edges are the parts, or, on a grid, its cells."""

from __future__ import annotations

from typing import Any

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP


def _family(part: str, shape: str) -> Family:
    layout = Layout("ShortestPath", shape, sizes=(Size("lengths", bounds=shape[0]),))  # of which only the largest has a goal

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


def _most_parts(shape: tuple[int, ...], network: int) -> int:
    from pullback.inference.shortest_path.network import known

    return known(network).longest


EDGES, CELLS = _family("edge", "E"), _family("cell", "n, m")
