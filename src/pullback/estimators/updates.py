"""The inner update: how the pulled-back label moves against gamma, the gradient of an example's loss.

Forbidden parts stay forbidden: gamma is read on allowed parts only, and mu is zero on all others.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pullback.estimators.checks import positive
from pullback.estimators.config import Configured
from pullback.structures import Structure


@dataclass(frozen=True)
class InnerState:
    """The state of the inner steps.

    Attributes:
        start: mu^(0), `[..., *parts]`.
        mu: the pulled-back label so far, mu^(t), `[..., *parts]`.
        moved: mu^(0) - mu^(t), `[..., *parts]`, stored separately: it may be far smaller than the rounding errors of mu.
        scores: the perturbed scores, `[..., *parts]`; in a mirror step mu are their marginals.
        allowed: which parts may be used, `[..., *parts]` of bool.
        vertex: a structure near mu, `[..., *parts]`, where a projection may start.
        from_marginals: whether mu^(0) = Marg(s).
    """

    start: Tensor
    mu: Tensor
    moved: Tensor
    scores: Tensor
    allowed: Tensor
    vertex: Tensor | None
    from_marginals: bool

    def after(self, moved: Tensor, mu: Tensor | None = None, scores: Tensor | None = None) -> InnerState:
        """The state after a step to mu^(0) - moved, or to mu where that is known to the last digit, with scores of its own."""
        return InnerState(
            self.start, self.start - moved if mu is None else mu, moved, self.scores if scores is None else scores,
            self.allowed, self.vertex, self.from_marginals,
        )  # fmt: skip


class Update(Configured, abc.ABC):
    """One inner step on min over mu of L(mu).

    Args:
        step_size: eta > 0, on the gradient of one example's loss. A tensor that broadcasts against the scores gives
            each example or part its own step size; it is not saved in a config.
    """

    from_marginals: ClassVar[bool] = False
    """Whether the steps can only start at Marg(s)."""

    def __init__(self, step_size: float | Tensor = 1.0) -> None:
        self.step_size = positive(self, "step_size", step_size)

    def init(
        self,
        structure: Structure,
        scores: Tensor,
        start: Tensor,
        *,
        vertex: Tensor | None = None,
        from_marginals: bool = False,
    ) -> InnerState:
        """The state before the first step.

        Args:
            structure: the structure.
            scores: `[..., *parts]`.
            start: mu^(0), of the shape of the scores.
            vertex: a structure near the start, where a projection may begin its search.
            from_marginals: whether the start is Marg(s): small steps are then projected at less cost.
        """
        allowed = structure.allowed(scores)
        moved = torch.zeros_like(start)
        return InnerState(start, start, moved, scores.to(start.dtype), allowed, vertex, from_marginals)

    @abc.abstractmethod
    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        """The state after one more step; `gamma` is the gradient of each example's loss at `state.mu`."""

    def _by(self, gamma: Tensor) -> Tensor:
        return (self.step_size * gamma).to(gamma.dtype)


class Unconstrained(Update):
    """A gradient step without constraint, STE-I's inner update.

        mu^(t+1) = mu^(t) - eta * gamma

    Parts that are not allowed stay at zero.
    """

    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        moved = torch.where(state.allowed, state.moved + self._by(gamma), 0.0)
        return state.after(moved)


class Projected(Update):
    """A projected gradient step, SPIGOT's inner update.

    Solves, for each example,

        min over mu of || mu - (mu^(t) - eta * gamma) ||^2   subject to  mu in M,

    with M the structure's marginal polytope. Near mu^(0) = Marg(s), an inner point of M, the projection is often a mere shift.
    If the structure has `step_inside`, it certifies such examples, and SparseMAP projects only the others.

    >>> from pullback import Categorical
    >>> update = Projected(step_size=1.0)
    >>> state = update.init(Categorical(), scores=torch.zeros(1, 3), start=torch.tensor([[1.0, 0, 0]]))
    >>> update.step(Categorical(), state, gamma=torch.tensor([[1.0, 0, 0]])).mu
    tensor([[0.3333, 0.3333, 0.3333]])
    """

    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        by = self._by(gamma)
        # In float64: a step may be smaller than the rounding errors of mu, which would become a part of it.
        start = state.start.double()
        here = start if state.mu is state.start else start - state.moved  # before the first step nothing has moved
        target = torch.where(state.allowed, here - by, -torch.inf)
        vertex = state.vertex
        step_inside = getattr(structure, "step_inside", None)
        known = state.from_marginals and vertex is not None
        near = step_inside(state.scores, state.start, state.moved + by) if step_inside is not None and known else None
        if near is None or vertex is None:
            moved = (start - structure.sparsemap(target, warm_start=vertex)).to(state.start.dtype)
            return state.after(moved)
        moved, inside = near
        if inside.device.type == "cpu" and inside.all():
            return state.after(moved)
        inside = inside[(..., *[None] * structure.event_dims)]
        # A structure is its own projection: where that is the target, and the start, SparseMAP has nothing to do.
        mu = structure.sparsemap(torch.where(inside & state.allowed, vertex.double(), target), warm_start=vertex)
        moved = torch.where(inside, moved, (start - mu).to(moved.dtype))
        return state.after(moved)


class LocallyProjected(Update):
    """A projected gradient step onto a simpler set than the marginal polytope M, which contains M.

    Solves, for each example,

        min over mu of || mu - (mu^(t) - eta * gamma) ||^2   subject to  mu in L,

    with L the structure's local polytope (`local_projection`): for trees, one head per word and at least one word at the
    root. The result equals that of `Projected` wherever it lies in M, which is common after a small step from an
    inner point. It is much faster where SparseMAP would have to find hundreds of trees one by one.

    >>> from pullback import Categorical
    >>> update = LocallyProjected(step_size=1.0)
    >>> state = update.init(Categorical(), scores=torch.zeros(1, 3), start=torch.tensor([[1.0, 0, 0]]))
    >>> update.step(Categorical(), state, gamma=torch.tensor([[1.0, 0, 0]])).mu
    tensor([[0.3333, 0.3333, 0.3333]])
    """

    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        # A step may be smaller than the rounding errors of mu, which the projection would take for a part of it.
        project = getattr(structure, "local_projection", structure.sparsemap)
        start = project(torch.where(state.allowed, state.start.double(), -torch.inf))
        target = torch.where(state.allowed, start - state.moved.double() - self._by(gamma).double(), -torch.inf)
        moved = (start - project(target)).to(state.start.dtype)
        return state.after(moved)


class Mirror(Update):
    """A mirror step, SPIGOT-EG's inner update: exponentiated gradient for a categorical.

        s^(t+1) = s^(t) - eta * gamma,    mu^(t+1) = Marg(s^(t+1)),    s^(0) = s

    It must start from mu^(0) = Marg(s): at other points the scores of mu are not known.

    >>> from pullback import Categorical
    >>> scores = torch.tensor([[1.0, 0.0]])
    >>> state = Mirror().init(Categorical(), scores, start=scores.softmax(-1))
    >>> Mirror().step(Categorical(), state, gamma=torch.tensor([[1.0, 0.0]])).mu
    tensor([[0.5000, 0.5000]])
    """

    from_marginals: ClassVar[bool] = True

    def step(self, structure: Structure, state: InnerState, gamma: Tensor) -> InnerState:
        scores = torch.where(state.allowed, state.scores - self._by(gamma), -torch.inf)
        mu = structure.marginals(scores)
        return state.after(state.start - mu, mu, scores)
