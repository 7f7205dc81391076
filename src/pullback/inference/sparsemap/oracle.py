"""The interface between the search and a structure: the best vertex for given scores, and little else. See README.md."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import types

from pullback.inference._numba.compile import callback, calling
from pullback.inference._numba.records import Record

Shape = tuple[int, ...]
Fixed = Record(  # what does not depend on the scores
    "Fixed",
    shape=(np.int64, 1),  # [d]: of the parts
    limits=(np.int64, 1),  # of each size
    options=(np.int64, 1),
    addresses=(np.int64, 1),  # [6]: of the oracle's functions (best, for float32 too, arrange, valid, ends, centre), or 0
    groups=(np.int32, 1),  # [K], or [0]
)

_integers, _parts, _bytes = (types.Array(t, 1, "C") for t in (types.int64, types.int32, types.uint8))


def _finds(scores: Any) -> Any:
    return types.int64(types.Array(scores, 1, "C"), _integers, _integers, _integers, _bytes, _parts)


_BEST, _ROUGH = _finds(types.float64), _finds(types.float32)
_ARRANGE = types.int64(_integers, _integers, _integers, _parts)
_VALID = types.int64(_integers, _integers, _integers, _parts, types.int64)
_ENDS = types.int64(_integers, _integers, _integers, _parts, _parts)
_CENTRE = types.int64(_integers, _integers, _integers, types.int64, _parts)
call_best, call_rough, call_arrange, call_valid, call_ends, call_centre = map(
    calling, (_BEST, _ROUGH, _ARRANGE, _VALID, _ENDS, _CENTRE)
)


def fixed(*values: Any) -> tuple[list[int], Any]:
    """A record of `Fixed` with these fields, and what has to be kept with it."""
    kept = {
        name: torch.from_numpy(np.array(value, kind[0]))
        for (name, kind), value in zip(Fixed.fields.items(), values, strict=True)
    }
    return Fixed.table(kept).tolist(), kept


@dataclass(frozen=True)
class Paths:
    """A graph whose edges are the parts, and whose paths from the first to the last node are the structures.

    Args:
        ends: `ends(shape, sizes, options, tails, heads)` writes the nodes that each part joins, -1 to `tails` for entries that
            are no parts, and returns how many nodes there are. A tail comes before its head, and tails ascend with the
            parts. A graph of one node has the empty structure.
        nodes: `nodes(shape)`, how many nodes there are at most.
        reach: `reach(shape)`, by how much the nodes of a part differ at most.
    """

    ends: Callable[..., Any]
    nodes: Callable[[Shape], int]
    reach: Callable[[Shape], int]


@dataclass(frozen=True, eq=False)
class Oracle:
    """The oracle of one structure, for one example at a time: functions that Numba compiles when they are needed.

    All take the padded `shape` of the parts, the example's `sizes` and the family's `options`, as int64 vectors.

    Args:
        best: `best(scores, shape, sizes, options, work, parts)` writes the part indices of a best structure and returns
            how many there are, -1 if there is no structure. Scores are float64 and flat, finite or -inf.
        work: `work(shape)`, how many bytes of scratch that needs (see `carve`).
        groups: `groups(shape)`, the group of each part, int32 `[K]`, where every structure has exactly one part
            of each group, else -1. Scores are shifted by a constant for each group, which saves digits.
        places: where `best` wants to find the scores, if not in their own order: `count(shape)`, how many
            places there are, and `arrange(shape, sizes, options, places)`, which writes the place of each part, -1 for
            entries that are no part, and returns how many places it uses. What is no part's place holds -inf.
        rough: whether `best` is faster on float32, where it finds almost all of an active set.
        valid: `valid(shape, sizes, options, parts, count)`, whether these parts are a structure; without it `best` decides.
        choices: the values of options that are strings: the functions get an index into them.
        centre: `centre(shape, sizes, options, turn, parts)` writes one of a few structures whose mean is the projection of
            equal scores, if all parts are allowed, and returns how many parts it has, -1 if there are no more. A search
            for nearly equal scores starts from them.
        paths: the graph, where structures are the paths of one: they are projected on by `flow.py`.
    """

    best: Callable[..., Any]
    work: Callable[[Shape], int]
    groups: Callable[[Shape], np.ndarray] | None = None
    places: tuple[Callable[[Shape], int], Callable[..., Any]] | None = None
    rough: bool = False
    valid: Callable[..., Any] | None = None
    choices: tuple[str, ...] = ()
    centre: Callable[..., Any] | None = None
    paths: Paths | None = None

    def of(self, options: tuple[Any, ...]) -> Oracle:
        """The oracle of structures with these options."""
        return self

    def encode(self, options: tuple[Any, ...]) -> tuple[int, ...]:
        """Options as integers."""
        return tuple(self.choices.index(x) if isinstance(x, str) else int(x) for x in options)

    @functools.lru_cache(maxsize=64)  # noqa: B019 (oracles are few and live as long as their modules)
    def fixed(self, shape: Shape, limits: Shape, options: tuple[int, ...]) -> tuple[list[int], Any]:
        """A record of `Fixed`, and what has to be kept with it."""
        addresses = [each.address if each else 0 for each in self._compiled]
        return fixed(shape, limits, options, addresses, self.groups(shape) if self.groups else ())

    def place_count(self, shape: Shape) -> int:
        return self.places[0](shape) if self.places else int(np.prod(shape))

    @functools.cached_property
    def _compiled(self) -> list[Any]:
        arrange = self.places[1] if self.places else None
        ends = self.paths.ends if self.paths else None
        rough = self.best if self.rough else None
        wanted = (
            (_BEST, self.best), (_ROUGH, rough), (_ARRANGE, arrange), (_VALID, self.valid), (_ENDS, ends),
            (_CENTRE, self.centre),
        )  # fmt: skip
        return [callback(*each) if each[1] else None for each in wanted]
