"""Accuracy, and how well the predicted clusters match the true ones."""

from __future__ import annotations

import torch
from torch import Tensor


def v_measure(counts: Tensor) -> Tensor:
    """The harmonic mean of homogeneity and completeness, between 0 and 1, from counts `[..., true, predicted]`.

        h = 1 - H(true | predicted) / H(true),   c = 1 - H(predicted | true) / H(predicted),   v = 2 h c / (h + c)

    (Rosenberg and Hirschberg, 2007). h is 1 if there is one true cluster, c is 1 if there is one predicted
    cluster, and v is 0 if both h and c are.

    >>> v_measure(torch.tensor([[0, 5], [5, 0]]))   # the same clusters under other names
    tensor(1., dtype=torch.float64)
    """
    p = counts.double()
    p = p / p.sum((-2, -1), keepdim=True)
    joint, true, predicted = _entropy(p.flatten(-2)), _entropy(p.sum(-1)), _entropy(p.sum(-2))
    mutual = true + predicted - joint
    h = torch.where(true > _ROUNDING, mutual / true, 1.0)
    c = torch.where(predicted > _ROUNDING, mutual / predicted, 1.0)
    return torch.where(h + c > _ROUNDING, 2 * h * c / (h + c), 0.0).clamp(0.0, 1.0)


_ROUNDING = 1e-12


def _entropy(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1)
