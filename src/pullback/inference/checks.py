"""Errors about the values of a batch of scores, the same from every backend: a status per example, said in words once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from pullback.inference.layout import Layout

OK, NAN, INFEASIBLE, INFINITE, BAD_SIZE = range(5)


class BadValuesError(ValueError):
    """Some examples of a batch have a status that is not OK; the family that ran the operation says it in words.

    Args:
        status: `[B]` of the codes above.
    """

    def __init__(self, status: Tensor) -> None:
        super().__init__(f"status of the examples: {status.tolist()}")
        self.status = status


@dataclass(frozen=True)
class Nouns:
    """How a family's errors call things.

    Attributes:
        example: one of the batch.
        structure: what its parts make up.
        part: what a score belongs to.
        unit: what sizes count, in the plural.
        infeasible: why an example may have no structure.
    """

    example: str = "example"
    structure: str = "structure"
    part: str = "part"
    unit: str = "positions"
    infeasible: str = "too many {part}s are forbidden (-inf)"

    def say(self, code: int) -> str:
        """What is wrong with an example of this status."""
        part = f"an {self.part}" if self.part[0] in "ai" else f"a {self.part}"
        texts = {
            NAN: f"contains NaN among its real {self.unit}; check the encoder that made it (padding may be anything)",
            INFINITE: f"contains +inf; scores must be finite, or -inf to forbid {part}",
            INFEASIBLE: f"has no feasible {self.structure}: {self.infeasible.format(part=self.part)}",
        }
        return texts[code]


def raise_for(status: Tensor | np.ndarray) -> None:
    """Raise if the status `[B]` of some example is not OK. On a GPU this waits for the device."""
    if isinstance(status, np.ndarray):
        status = torch.from_numpy(status)
    if status.any():
        raise BadValuesError(status)


def settled(result: Tensor, status: np.ndarray, validate: bool) -> Tensor:
    """The result `[B, ...]`, NaN for the examples whose status is not OK; or an error that names the first of those."""
    if status.any():
        if validate:
            raise_for(status)
        result[torch.from_numpy(status != OK)] = torch.nan
    return result


def in_range(layout: Layout, shape: torch.Size, sizes: Sequence[Tensor]) -> tuple[tuple[np.ndarray, ...], bool]:
    """Sizes as arrays, those out of range at the nearest value that is possible; and whether there are none of those."""
    arrays, right = [], True
    for index, size in enumerate(sizes):
        array, limit = size.numpy(), layout.limit(index, shape)
        if len(array) > 0 and (array.min() < 0 or (limit is not None and array.max() > limit)):
            array, right = array.clip(0, limit), False
        arrays.append(np.ascontiguousarray(array))
    return tuple(arrays), right


def finish(
    layout: Layout, scores: Tensor, sizes: Sequence[Tensor], results: tuple[Tensor, ...], value: np.ndarray, validate: bool
) -> tuple[Tensor, ...]:
    """The results, NaN for the examples that have none; or an error that names the first of those.

    Args:
        layout: of the scores.
        scores: `[B, *parts]`.
        sizes: as they were passed, which may be out of range.
        results: `[B, ...]` each.
        value: `[B]`: -inf says that an example has no structure.
        validate: whether to raise.
    """
    status = layout.status(scores, sizes)
    status = torch.where((status == OK) & torch.from_numpy(value == -np.inf), INFEASIBLE, status)
    if validate:
        raise_for(status)
    bad = status != OK
    return tuple(torch.where(bad.reshape(-1, *[1] * (result.dim() - 1)), torch.nan, result) for result in results)


def status_of(scores: Tensor, mask: Tensor) -> Tensor:
    """What the values of the scores say about each example, `[B]`: NAN, INFINITE or OK.

    Args:
        scores: `[B, *parts]`.
        mask: `[B, *parts]` of bool, which entries are parts.
    """
    infinite = ((scores == torch.inf) & mask).flatten(1).any(1)
    nan = (scores.isnan() & mask).flatten(1).any(1)
    return torch.where(nan, NAN, torch.where(infinite, INFINITE, OK))
