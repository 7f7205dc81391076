"""A point of the capped simplex as an average of subsets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Decomposed:
    """The subsets of mu `[..., n]`, by systematic sampling: made on request.

    Laid end to end, the numbers mu_i fill the line from 0 to k. For an offset u in [0, 1), the points u, u + 1, ..., u + k - 1
    each fall into an item: that is a subset, and for u drawn uniformly its mean is mu. It changes at most n times with u.
    """

    mu: Tensor

    @cached_property
    def _decomposition(self) -> tuple[Tensor, Tensor]:
        mu = self.mu.double()
        if mu.shape[-1] == 0:
            return mu.new_zeros(*mu.shape[:-1], 1, 0), mu.new_ones(*mu.shape[:-1], 1)
        ends = mu.cumsum(-1)
        ends = ends + (ends[..., -1:].round() - ends[..., -1:]) * (mu > 0).to(mu).cumsum(-1).clamp_max(1.0)
        cuts = (ends - ends.floor()).sort(-1).values
        cuts = torch.where((cuts > 1 - 1e-9) | (cuts < 1e-9), 0.0, cuts).sort(-1).values
        upper = torch.cat([cuts[..., 1:], torch.ones_like(cuts[..., :1])], -1)
        weights = upper - cuts
        middle = 0.5 * (upper + cuts)
        passed = (ends[..., None, :] - middle[..., :, None]).ceil().clamp_min(0.0)  # how many points lie before an item's end
        z = torch.diff(passed, dim=-1, prepend=torch.zeros_like(passed[..., :1]))
        return torch.where(weights[..., None] > 0, z, 0.0), weights

    @property
    def structures(self) -> Tensor:
        """`[..., n, n]`: subset x item."""
        return self._decomposition[0].to(self.mu.dtype)

    @property
    def weights(self) -> Tensor:
        """`[..., n]`, float64; zero where there are fewer subsets."""
        return self._decomposition[1]
