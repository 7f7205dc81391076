"""Examples whose numbers leave the range of a fast kernel, again by a careful one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pullback.inference.checks import OK, BadValuesError


def again(
    careful: Callable[..., tuple[Tensor, ...]],
    which: Tensor,
    tensors: tuple[Tensor, ...],
    results: tuple[Tensor, ...],
    validate: bool,
) -> None:
    """Compute some examples again, and write over their results.

    Args:
        careful: from the tensors of those examples to their results; it raises for bad values if `validate`.
        which: `[B]` of bool.
        tensors: `[B, ...]` each.
        results: `[B, ...]` each, to write.
        validate: whether to check values.
    """
    rows = torch.nonzero(which).squeeze(1)
    try:
        found = careful(*[x[rows] for x in tensors], validate=validate)
    except BadValuesError as error:
        status = torch.full(which.shape, OK, dtype=error.status.dtype)
        status[rows] = error.status
        raise BadValuesError(status) from None
    for result, values in zip(results, found, strict=True):
        result[rows] = values.to(result.dtype)
