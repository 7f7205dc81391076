"""gamma as inner steps may read it: on allowed parts, and finite. What is not is kept aside and put back as NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference._torch import derivatives


class Gammas:
    """The gammas of the inner steps of one batch, whose examples fail one by one.

    An example whose gamma is not finite on an allowed part gets a NaN gradient (there: zeros stay on all other
    parts), which a `GradScaler` sees and skips; inference gets zeros in its place, and the other examples are not
    affected.

    Args:
        allowed: which parts may be used, `[B, ..., *parts]` or `[samples, B, ..., *parts]` of bool.
        examples: how many leading dimensions have losses of their own.
    """

    def __init__(self, allowed: Tensor, examples: int) -> None:
        self.allowed = allowed
        self._examples = examples
        self._failed: Tensor | None = None

    def read(self, gamma: Tensor) -> Tensor:
        """Gamma with zeros on parts that are not allowed and in examples that fail."""
        gamma = torch.where(self.allowed, gamma, 0.0)
        finite = gamma.isfinite()
        if gamma.is_cpu and derivatives.is_plain() and finite.all():  # looking is free
            return gamma
        finite = finite.flatten(self._examples).all(-1)
        failed = ~finite.reshape(finite.shape + (1,) * (gamma.dim() - finite.dim()))
        self._failed = failed if self._failed is None else self._failed | failed
        return torch.where(failed, 0.0, gamma)

    def mark(self, surrogate: Tensor) -> Tensor:
        """The surrogate gradient, NaN on the allowed parts of the examples that failed."""
        if self._failed is None:
            return surrogate
        return torch.where(self._failed & self.allowed, torch.nan, surrogate)
