"""A proximal step: the inner update of LPGD."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators.checks import positive
from pullback.estimators.updates import InnerState, Update
from pullback.structures import Structure


class Proximal(Update):
    """A proximal step: the best point for scores that moved against gamma, held near the start.

        s^(t+1) = s^(t) - eta * gamma,    s^(0) = s,
        mu^(t+1) = argmax over mu in M of <s^(t+1), mu> - ||mu - mu^(0)||^2 / (2 rho)
                 = projection of mu^(0) + rho s^(t+1) onto M

    It is a mirror step at temperature 0 for large rho, and a projected step of size rho * eta from the argmax for
    small rho.

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        rho: > 0; how far the label may go from its start.

    >>> from pullback import Categorical
    >>> scores, start = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    >>> update = Proximal(step_size=2.0, rho=0.5)
    >>> state = update.init(Categorical(), scores, start)
    >>> update.step(Categorical(), state, gamma=torch.tensor([[1.0, 0.0]])).mu
    tensor([[0.7500, 0.2500]])
    """

    def __init__(self, step_size: float | Tensor = 1.0, rho: float | Tensor = 1.0) -> None:
        super().__init__(step_size)
        self.rho = positive(self, "rho", rho)

    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        scores = torch.where(state.allowed, state.scores - self._by(gamma), -torch.inf)
        # In float64: a step may be smaller than the rounding errors of mu, which would become a part of it.
        target = state.start.double() + self.rho * torch.where(state.allowed, scores, 0.0).double()
        mu = structure.sparsemap(torch.where(state.allowed, target, -torch.inf), warm_start=state.vertex)
        moved = (state.start.double() - mu).to(state.start.dtype)
        return state.after(moved, scores=scores)
