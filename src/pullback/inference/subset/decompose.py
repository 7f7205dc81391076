"""A point of the capped simplex as an average of subsets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

_UNIT = 2**40


@dataclass(frozen=True, eq=False)
class Decomposed:
    """The subsets of mu `[..., n]`, by systematic sampling: made on request.

    Laid end to end, the numbers mu_i fill the line from 0 to k. For an offset u in [0, 1), the points u, u + 1, ..., u + k - 1
    each fall into an item: that is a subset, and for u drawn uniformly its mean is mu. It changes at most n times with u.
    For subsets of at most k items the line may end between two numbers, which makes one more subset.
    """

    mu: Tensor
    most: Tensor | None = None

    @cached_property
    def _decomposition(self) -> tuple[Tensor, Tensor]:
        mu = self.mu.double()
        if mu.shape[-1] == 0:
            return mu.new_zeros(*mu.shape[:-1], 1, 0), mu.new_ones(*mu.shape[:-1], 1)
        units = (mu.nan_to_num(0.0) * _UNIT).round().long()  # in integers nothing is rounded from here on
        missing = mu.nan_to_num(0.0).sum(-1, keepdim=True).round().long() * _UNIT - units.sum(-1, keepdim=True)
        if self.most is not None:  # beyond which only rounding has led
            missing = (self.most[..., None].to(units) * _UNIT - units.sum(-1, keepdim=True)).clamp_max(0)
        inner = (mu - 0.5).abs().argmin(-1, keepdim=True)
        ends = units.scatter_add(-1, inner, missing).clamp(0, _UNIT).cumsum(-1)
        cuts = (ends % _UNIT).sort(-1).values
        if self.most is not None:
            cuts = torch.cat([torch.zeros_like(cuts[..., :1]), cuts], -1)
        widths = torch.diff(cuts, append=torch.full_like(cuts[..., :1], _UNIT))
        passed = -((cuts[..., :, None] - ends[..., None, :]) // _UNIT)  # how many points lie before an item's end
        z = torch.diff(passed.clamp_min(0), dim=-1, prepend=torch.zeros_like(passed[..., :1])).to(mu)
        nothing = mu.isnan().any(-1, keepdim=True)
        weights = torch.where(nothing, torch.nan, widths.to(mu) / _UNIT)
        return torch.where(widths[..., None] > 0, z, 0.0) + torch.where(nothing, torch.nan, 0.0)[..., None], weights

    @property
    def structures(self) -> Tensor:
        """`[..., n, n]`: subset x item; n + 1 subsets where they may have different sizes."""
        return self._decomposition[0].to(self.mu.dtype)

    @property
    def weights(self) -> Tensor:
        """`[..., n]`, or n + 1, float64; zero where there are fewer subsets."""
        return self._decomposition[1]
