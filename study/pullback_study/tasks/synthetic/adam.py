"""Adam for many replicas at once, each with its own learning rate."""

from __future__ import annotations

import torch
from torch import Tensor


class Adam:
    """Adam as `torch.optim.Adam` (and AdamW without weight decay) has it, on parameters `[R, P]`.

        m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
        theta <- theta - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)

    Everything is a tensor that is updated in place, so that a step can be captured in a CUDA graph.

    Args:
        parameters: `[R, P]`, one replica a row.
        learning_rates: `[R]`.
        step: t - 1, an integer tensor that the owner advances after each update.
    """

    def __init__(
        self,
        parameters: Tensor,
        learning_rates: Tensor,
        step: Tensor,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters = parameters
        self.mean = torch.zeros_like(parameters, requires_grad=False)
        self.square = torch.zeros_like(parameters, requires_grad=False)
        self._rates = learning_rates.double()[:, None]
        self._step = step
        self._betas = betas
        self._eps = eps

    @torch.no_grad()
    def update(self, gradient: Tensor) -> None:
        b1, b2 = self._betas
        t = (self._step + 1).double()
        self.mean.lerp_(gradient, 1 - b1)
        self.square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        rate = (self._rates / (1 - torch.pow(b1, t))).to(gradient.dtype)
        root = (1 - torch.pow(b2, t)).sqrt().to(gradient.dtype)
        self.parameters.sub_(rate * self.mean / (self.square.sqrt() / root + self._eps))
