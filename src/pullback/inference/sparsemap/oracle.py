"""What a search needs to know of the kind of trees: the oracle, and where it wants to find the scores of arcs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Oracle:
    """Compiled functions of one kind of trees.

    Attributes:
        projective: whether arcs may not cross.
        places: `places(n)`, how many places for scores there are.
        place_of: `place_of(head, word, length)`, where an arc's score stands; the other places hold -inf.
        workspace: `workspace(n, like)`, scratch for scores of the dtype of `like`.
        best_heads: `best_heads(scores, length, multiroot, work, heads)` finds a best tree, and returns whether there is one.
        rough: the dtype in which it is faster, and finds almost all of an active set; float64 if there is no such.
    """

    projective: bool
    places: Callable[..., Any]
    place_of: Callable[..., Any]
    workspace: Callable[..., Any]
    best_heads: Callable[..., Any]
    rough: type
