"""A mirror step at temperature 0: the inner update of Blackbox and I-MLE."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.estimators.updates import InnerState, Update
from pullback.inference.front.layout import working
from pullback.structures import Structure


class MirrorAtZero(Update):
    """A mirror step at temperature 0: the label is the best structure for scores that moved against gamma.

        s^(t+1) = s^(t) - eta * gamma,    mu^(t+1) = argmax(s^(t+1)),    s^(0) = s

    `Mirror(eta / T)` on scores s / T tends to it as T tends to 0. The label is always a structure, and it is the
    argmax of s while the step is too small to change it: the surrogate gradient of a perceptron loss is then exactly
    zero.

    >>> from pullback import Categorical
    >>> scores = torch.tensor([[1.0, 0.0]])
    >>> update = MirrorAtZero(step_size=2.0)
    >>> state = update.init(Categorical(), scores, start=torch.tensor([[1.0, 0.0]]))
    >>> update.step(Categorical(), state, gamma=torch.tensor([[1.0, 0.0]])).mu
    tensor([[0., 1.]])
    """

    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        # Half precision may not hold the step.
        scores = torch.where(state.allowed, working(state.scores) - self.step_size * working(gamma), -torch.inf)
        mu = structure.argmax(scores).to(state.start.dtype)
        return state.after(state.start - mu, mu, scores)
