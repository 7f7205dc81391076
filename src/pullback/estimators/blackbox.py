"""Differentiation of blackbox solvers (Vlastelica et al., 2020)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from pullback.estimators.checks import positive
from pullback.estimators.losses import Perceptron
from pullback.estimators.mirror_at_zero import MirrorAtZero
from pullback.estimators.pulled_back import PulledBack
from pullback.estimators.starts import FromArgmax


class Blackbox(PulledBack):
    """Differentiation of blackbox solvers, DBB: a difference quotient of the argmax along gamma.

        z = argmax(s),    gradient [argmax(s) - argmax(s - eta * gamma)] / eta

    The exact gradient of a piecewise affine interpolation of the loss; zero where eta is too small to change the
    argmax. Scores are not clamped. In the pulled-back frame it is a perceptron loss and a mirror step at temperature
    0, divided by eta.

    Args:
        step_size: eta > 0, on the gradient of one example's loss; 10 to 20 is usual for scores of size 1.

    >>> import torch
    >>> from pullback import Categorical
    >>> scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 1.0])
    >>> Blackbox(step_size=2.0).objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad
    tensor([[ 0.5000, -0.5000,  0.0000]])
    """

    per_step: ClassVar[bool] = True

    def __init__(self, step_size: float | Tensor = 10.0) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(Perceptron(), FromArgmax(), MirrorAtZero(step_size))
