"""Tables of probabilities that people pass, as logarithms."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.front.layout import check_tensor
from pullback.structures.readers import is_readable


def log_probabilities(x: Tensor, name: str, owner: str, *, logits: bool, validate: bool | None) -> Tensor:
    """The logarithms of probabilities `[..., K]`, whose rows sum to 1; with `logits`, those of their softmax.

    The logarithm of 0 is -inf, and has a gradient of 0: what is impossible stays so. Values are checked on a CPU.
    """
    check_tensor(x, owner, name)
    if not x.is_floating_point():
        raise TypeError(
            f"{name} has dtype {x.dtype}; {owner} needs {'logits' if logits else 'probabilities'}: pass {name}.float()"
        )
    if logits:
        return x.log_softmax(-1)
    if validate is not False and is_readable(x):
        _check(x.detach(), name)
    possible = x.detach() != 0
    return torch.where(possible, torch.where(possible, x, 1.0).log(), -torch.inf)


def _check(x: Tensor, name: str) -> None:
    wrong = ~(x >= 0)  # NaN too
    if wrong.any():
        where = torch.nonzero(wrong)[0].tolist()
        raise ValueError(
            f"{name}{where} is {float(x[tuple(where)]):.4g}; probabilities are at least 0 (logits=True takes logits)"
        )
    totals = x.sum(-1, dtype=torch.float64)
    wrong = (totals - 1).abs() > max(1e-3, 4 * torch.finfo(x.dtype).eps ** 0.5)
    if wrong.any():
        where = torch.nonzero(wrong)[0].tolist() if wrong.dim() else []
        total = float(totals[tuple(where)])
        raise ValueError(
            f"{name}{where or ''} sums to {total:.4g}; rows of probabilities sum to 1: divide by {name}.sum(-1, keepdim=True), "
            f"or pass logits=True for logits (validate=False switches this check off)"
        )
