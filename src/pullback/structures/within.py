"""The probability that a structure uses only some parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pullback.structures.readers import is_readable

if TYPE_CHECKING:
    from pullback.structures.base import Structure


def log_prob_within(structure: Structure, scores: Tensor, allowed: Tensor) -> Tensor:
    """Log of the probability that z uses only allowed parts, `[...]`: a difference of two log-partitions, at most 0.

    Where no structure is left, the first of them is taken of all parts, so that its gradient is finite, and then dropped. An
    argmax finds these examples; where values may be read, only if a log-partition is not finite. Of a bad example all is NaN.
    """
    structure._check_same_shape(scores, allowed, "allowed")
    if allowed.dtype != torch.bool:
        raise TypeError(f"allowed has dtype {allowed.dtype}; it must be a mask, of torch.bool")
    inside = scores.masked_fill(~allowed, -torch.inf)
    whole = structure._expanded(scores, inside)
    total = structure._log_partition(whole)
    part = structure._unchecked_log_partition(inside) if is_readable(scores) else None
    if part is None or not bool(part.isfinite().all()):
        feasible = structure._feasible(inside)
        safe = torch.where(feasible.reshape(*feasible.shape, *[1] * structure.event_dims), inside, whole)
        found = torch.where(feasible | total.isnan(), structure._log_partition(safe) - total, -torch.inf)
    else:
        found = part - total
    return (found - torch.where(found > 0, found, 0.0).detach()).to(structure._result_dtype(scores))  # rounding
