"""What a search needs to know of the kind of trees: the oracle, and where it wants to find the scores of arcs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Oracle:
    """Compiled functions of one kind of trees.

    Attributes:
        name: of the kind.
        projective: whether arcs may not cross.
        places: `places(n)`, how many places for scores there are.
        place_of: `place_of(head, word, length)`, where an arc's score stands; the other places hold -inf.
        workspace: `workspace(n, like)`, scratch for scores of the dtype of `like`.
        best_heads: `best_heads(scores, length, multiroot, work, heads)` finds a best tree, and returns whether there is one.
        rough: the dtype in which it is faster, and finds almost all of an active set; float64 if there is no such.
    """

    name: str
    projective: bool
    places: Callable[..., Any]
    place_of: Callable[..., Any]
    workspace: Callable[..., Any]
    best_heads: Callable[..., Any]
    rough: type

    def own(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is compiled for each oracle, under a name of its own.

        Numba links compiled functions by their qualified names: two of the same name and the same types of arguments,
        from two cached kernels, would be taken for one.
        """
        function.__qualname__ = f"{function.__qualname__}.{self.name}"
        return function
