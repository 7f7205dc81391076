"""Which precision inference runs in, and which one its results have."""

from __future__ import annotations

import torch
from torch import Tensor

_HALF = (torch.float16, torch.bfloat16)


def working(scores: Tensor) -> Tensor:
    """The scores in the precision of inference: half precisions become float32."""
    if not scores.dtype.is_floating_point:
        raise TypeError(
            f"scores have dtype {scores.dtype}; inference needs floating point: pass scores.float(), "
            f"or build them with a decimal point"
        )
    return scores.float() if scores.dtype in _HALF else scores


def result_dtype(scores: Tensor) -> torch.dtype:
    """The dtype of what is returned: the scores' own, but float32 for half precision under autocast."""
    if scores.dtype in _HALF and torch.is_autocast_enabled(scores.device.type):
        return torch.float32
    return scores.dtype
