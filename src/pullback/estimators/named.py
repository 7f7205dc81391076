"""The paper's surrogate gradients, as instances of the pulled-back frame."""

from __future__ import annotations

from torch import Tensor

from pullback.estimators.checks import positive
from pullback.estimators.losses import CrossEntropy, Perceptron
from pullback.estimators.pulled_back import PulledBack
from pullback.estimators.starts import FromArgmax, FromMarginals
from pullback.estimators.updates import Mirror, Projected, Unconstrained


class STEIdentity(PulledBack):
    """STE-I, straight-through with the identity: a perceptron loss and gradient steps without constraint.

        gradient argmax(s) - mu^(k),    mu^(t+1) = mu^(t) - eta * gamma,    mu^(0) = argmax(s);

    with one step the gradient is eta * gamma.

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k times in all.
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(Perceptron(), FromArgmax(), Unconstrained(step_size), steps)


class SPIGOT(PulledBack):
    """SPIGOT: a perceptron loss and projected gradient steps from the argmax.

        gradient argmax(s) - mu^(k),    mu^(t+1) = SparseMAP(mu^(t) - eta * gamma),    mu^(0) = argmax(s)

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k times in all.

    >>> import torch
    >>> from pullback import Categorical
    >>> scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 1.0])
    >>> SPIGOT(step_size=1.0).objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad
    tensor([[ 0.5000, -0.5000,  0.0000]])
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(Perceptron(), FromArgmax(), Projected(step_size), steps)


class SPIGOTCE(PulledBack):
    """SPIGOT-CE: cross-entropy (the CRF loss) and projected gradient steps from the marginals.

        gradient Marg(s) - mu^(k),    mu^(t+1) = SparseMAP(mu^(t) - eta * gamma),    mu^(0) = Marg(s)

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k + 1 times in all.
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(CrossEntropy(), FromMarginals(), Projected(step_size), steps)


class SPIGOTEG(PulledBack):
    """SPIGOT-EG: cross-entropy (the CRF loss) and mirror steps from the marginals.

        gradient Marg(s) - mu^(k),    s^(t+1) = s^(t) - eta * gamma,    mu^(t) = Marg(s^(t)),    s^(0) = s

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k + 1 times in all.
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(CrossEntropy(), FromMarginals(), Mirror(step_size), steps)
