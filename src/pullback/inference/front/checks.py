"""Errors about the values of a batch of scores, the same from every backend: a status per example, said in words once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from pullback.inference.front.layout import Layout

OK, NAN, INFEASIBLE, INFINITE, BAD_SIZE = range(5)
FULL, WORSE, BROKEN = range(5, 8)
"""Of SparseMAP only: no room for more structures; an argmax that is worse than a known structure, or not of zeros and ones."""


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
    infeasible: str = "too many {parts} are forbidden (-inf)"

    @property
    def parts(self) -> str:
        """The plural of a part."""
        return f"{self.part}{'es' if self.part.endswith('s') else 's'}"

    def say(self, code: int) -> str:
        """Returns the error text for an example of this status."""
        part = f"an {self.part}" if self.part[0] in "ai" else f"a {self.part}"
        texts = {
            NAN: f"contains NaN among its real {self.unit}; check the encoder that made it (padding may be anything)",
            INFINITE: f"contains +inf; scores must be finite, or -inf to forbid {part}",
            INFEASIBLE: f"has no feasible {self.structure}: {self.infeasible.format(part=self.part, parts=self.parts)}",
        }
        return texts[code]


def capturing(x: Tensor) -> bool:
    """Whether a CUDA graph is being captured, so that no check may wait for the device."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def raise_for(status: Tensor) -> None:
    """Raise if the status `[B]` of some example is not OK. On a GPU this waits for the device."""
    if status.any():
        raise BadValuesError(status)


def settled(result: Tensor, status: Tensor | np.ndarray, validate: bool) -> Tensor:
    """The result `[B, ...]`, NaN for the examples whose status is not OK; or an error that names the first of those."""
    if isinstance(status, np.ndarray):
        if not status.any():
            return result
        status = torch.from_numpy(status)
    if validate:
        raise_for(status)
    return torch.where((status != OK).reshape(-1, *[1] * (result.dim() - 1)), torch.nan, result)


def in_range(layout: Layout, shape: torch.Size, sizes: Sequence[Tensor]) -> tuple[tuple[np.ndarray, ...], bool]:
    """Sizes as arrays, those out of range at the nearest value that is possible; and whether there are none of those."""
    arrays: list[np.ndarray] = []
    right = True
    for index, size in enumerate(sizes):
        array, limit = size.contiguous().numpy(), layout.limit(index, shape)
        if layout.sizes[index].dims:
            arrays.append(array)
            continue
        most = 2**63 - 1 if limit is None else limit
        if len(array) > 0 and array.view(np.uint64).max() > most:  # as such numbers, negative ones are larger
            array, right = array.clip(0, limit), False
        arrays.append(array)
    return tuple(arrays), right


def finish(
    layout: Layout, scores: Tensor, sizes: Sequence[Tensor], results: tuple[Tensor, ...], value: np.ndarray, validate: bool
) -> tuple[Tensor, ...]:
    """Several results, settled: a `value` of -inf says that an example has no structure; scores and sizes tell the rest."""
    status = layout.status(scores, sizes)
    status = torch.where((status == OK) & torch.from_numpy(value == -np.inf), INFEASIBLE, status)
    return tuple(settled(result, status, validate) for result in results)


def status_of(scores: Tensor, mask: Tensor) -> Tensor:
    """The status of each example, `[B]`, by the values of the scores `[B, *parts]` in the mask: NAN, INFINITE or OK."""
    infinite = ((scores == torch.inf) & mask).flatten(1).any(1)
    nan = (scores.isnan() & mask).flatten(1).any(1)
    return torch.where(nan, NAN, torch.where(infinite, INFINITE, OK))
