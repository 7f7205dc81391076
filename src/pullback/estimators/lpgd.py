"""Lagrangian proximal gradient descent (Paulus et al., 2024)."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from pullback.estimators.checks import positive
from pullback.estimators.forward import Surrogate
from pullback.estimators.proximal import Proximal
from pullback.structures import Structure

Side = Literal["lower", "upper", "average"]
_SIGNS = {"lower": (1.0,), "upper": (-1.0,), "average": (1.0, -1.0)}


class LPGD(Surrogate):
    """LPGD: argmax forward; backward, a difference quotient of a proximal map along gamma.

        z = argmax(s),    x(tau) = projection of z + rho (s - tau * gamma) onto conv(Z),
        gradient  lower: (z - x(tau)) / tau,    upper: (x(-tau) - z) / tau,    average: the mean of both

    The lower side is Blackbox with step size tau for large rho; and tau times it, at tau = eta / rho, tends to SPIGOT
    with step size eta as rho tends to 0. x(tau) is a `Proximal(tau, rho)` step in the pulled-back frame.

    Args:
        step_size: tau > 0, on the gradient of one example's loss; 0.1 is usual.
        rho: > 0, how far x may go from z; 0.1 is usual.
        side: `lower`, `upper` or `average`.

    >>> import torch
    >>> from pullback import Categorical
    >>> scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 1.0])
    >>> estimator = LPGD(step_size=2.0, rho=0.5, side="lower")
    >>> estimator.objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad
    tensor([[ 0.1250, -0.1250,  0.0000]])
    """

    def __init__(self, step_size: float | Tensor = 1.0, rho: float | Tensor = 1.0, side: Side = "average") -> None:
        if side not in get_args(Side):
            raise ValueError(f"LPGD: side is {side!r}; it must be 'lower', 'upper' or 'average'")
        self.step_size = positive(self, "step_size", step_size)
        self.rho = positive(self, "rho", rho)
        self.side = side
        self._update = Proximal(step_size, rho)

    def gradient(self, structure: Structure, scores: Tensor, z: Tensor, gamma: Tensor) -> Tensor:
        signs = _SIGNS[self.side]
        # Both sides as one batch: on a GPU it takes as long as its hardest example.
        scores, z = (x.expand(len(signs), *x.shape) for x in (scores, z))
        start = self._update.init(structure, scores, z, vertex=z)
        both = self._update.step(structure, start, torch.stack([sign * gamma for sign in signs])).moved
        moved = [sign * each for sign, each in zip(signs, both, strict=True)]
        return sum(moved[1:], moved[0]) / (len(moved) * self.step_size)
