"""A family of operators for a recursion of a user's own."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.engine import recursion
from pullback.inference.engine.hypergraph import ranked
from pullback.inference.engine.hypergraph.backends import functions
from pullback.inference.engine.hypergraph.building import trace
from pullback.inference.engine.hypergraph.graph import Hypergraph
from pullback.inference.engine.hypergraph.levels import smallest_sizes
from pullback.inference.engine.hypergraph.tables import remembered
from pullback.inference.front.checks import Nouns
from pullback.inference.front.family import FUSED, STANDARD, Family
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP

_MOST = 10**5  # derivations that are listed
_NAMES = "n", "m", "k", "l", "p", "q", "r", "s"
_numbers = itertools.count()

Value = Callable[[Tensor, recursion.Combine], Tensor]
"""From scores `[B, *parts]` to values `[B]`, or `[B, n + 1]`, one for each length."""


@dataclass(frozen=True)
class Table:
    """The result of tracing a recursion.

    Attributes:
        graph: the hypergraph, with a goal for each length.
        by_length: whether the recursion returns a value for each length.
        least: `[*parts]`: the smallest length that uses a part; the largest number where none does.
    """

    graph: Hypergraph
    by_length: bool
    least: Tensor


@remembered
def _trace(program: Program, shape: tuple[int, ...]) -> Table:
    graph, found = trace(program.value, shape, f"{program.name}.value")
    if found not in ((1,), (1, shape[0] + 1)):
        raise ValueError(
            f"{program.name}.value returns {list(found)} for scores {[1, *shape]}; it must return [B], or [B, n + 1] with a "
            f"value for each length"
        )
    by_length = len(found) == 2
    if not by_length:  # one length only
        graph = graph.with_goals(np.append(np.full(shape[0], -1), graph.goals))
    least = torch.from_numpy(smallest_sizes(graph, math.prod(shape))[0]).reshape(shape)
    if by_length:
        _check_padding(program.name, least)
    return Table(graph, by_length, least)


def _check_padding(name: str, least: Tensor) -> None:
    """Raise if a length uses a part at or beyond it."""
    position = torch.arange(least.shape[0], device="cpu").reshape(-1, *[1] * (least.dim() - 1))
    wrong = (least <= position).nonzero()
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise ValueError(
            f"{name}.value uses the score at {list(place)} for length {int(least[place])}, of which it is padding: of scores "
            f"[B, n, ...], a length reads the positions before it"
        )


class Program:
    """A recursion, its tables and its operators.

    Args:
        name: of the structure.
        value: the recursion.
        dims: how many dimensions the parts have.
    """

    def __init__(self, name: str, value: Value, dims: int) -> None:
        self.name, self.value = name, value
        letters = ", ".join(_NAMES[:dims])
        self.layout = Layout(name, letters, sizes=(Size("lengths", bounds="n"),), parts=self._parts)
        self.family = Family(
            f"program{next(_numbers)}_{name.lower()}", self.layout, nouns=Nouns(),
            operations=STANDARD + FUSED + SPARSEMAP, most_parts=self._most_parts, implementations=self._implementations,
        )  # fmt: skip

    def table(self, shape: tuple[int, ...]) -> Table:
        """The table for scores of one shape."""
        return _trace(self, shape)

    def graph(self, shape: tuple[int, ...]) -> Hypergraph:
        return self.table(shape).graph

    def _parts(self, shape: tuple[int, ...], sizes: tuple[Tensor, ...], device: torch.device) -> Tensor:
        (lengths,) = sizes
        least = self.table(tuple(map(int, shape))).least.to(device)
        return least <= lengths.reshape(-1, *[1] * least.dim())

    def _most_parts(self, shape: tuple[int, ...]) -> int:
        return ranked.longest(self.graph, tuple(map(int, shape)), ()).parts

    def _implementations(self, backend: str) -> Any:
        return functions(backend, self.layout, self.graph, self._of_lengths, self._most_parts)

    def _of_lengths(self, scores: Tensor, lengths: Tensor, combine: recursion.Combine) -> Tensor:
        total = self.value(scores, combine)
        return total if total.dim() == 1 else total.gather(1, lengths[:, None]).squeeze(1)

    def derivations(self, shape: tuple[int, ...], length: int) -> list[tuple[int, ...]]:
        """The parts of every derivation of a length, in the order of the recursion."""
        graph = self.graph(shape)
        goal, parts = int(graph.goals[length]), math.prod(shape)
        found: list[list[tuple[int, ...]]] = [[()]]
        for v in range(1, goal + 1):
            found.append([])
            for e in range(graph.first[v], graph.first[v + 1]):
                right = found[graph.right[e]] if len(graph.right) else [()]
                own = (int(graph.part[e]),) if graph.part[e] < parts else ()
                if len(found[graph.left[e]]) * len(right) + len(found[v]) > _MOST:
                    raise ValueError(f"{self.name} has more than {_MOST} derivations for scores {list(shape)}: use fewer")
                found[v] += [a + b + own for a in found[graph.left[e]] for b in right]
        return found[goal] if goal >= 0 else []

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise if derivations are not one for each structure, or use a part twice."""
        table = self.table(shape)

        def place(part: int) -> list[int]:
            return [int(i) for i in np.unravel_index(part, shape)]

        for length in range(shape[0] + 1) if table.by_length else [shape[0]]:
            seen: set[tuple[int, ...]] = set()
            for parts in self.derivations(shape, length):
                where = f"(length {length})" if table.by_length else f"(scores {list(shape)})"
                twice = [part for part, count in Counter(parts).items() if count > 1]
                if twice:
                    raise ValueError(f"{self.name}.value uses the score at {place(twice[0])} twice in one structure {where}")
                key = tuple(sorted(parts))
                if key in seen:
                    raise ValueError(
                        f"{self.name}.value has two derivations for the structure with the parts {[place(p) for p in key]} "
                        f"{where}: sums over structures would count it twice"
                    )
                seen.add(key)
