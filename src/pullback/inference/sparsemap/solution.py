"""What a SparseMAP solver returns: the projection and its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


class NotConverged(RuntimeWarning):
    """SparseMAP hit its iteration limit: the result is a mean of structures, but not the projection."""


def not_converged(limit: int, converged: Tensor, gap: Tensor) -> str:
    """What to say about a batch of which some did not converge."""
    return (
        f"SparseMAP stopped at {limit} iterations before {int((~converged).sum())} of {len(converged)} examples had "
        f"converged (largest duality gap {float(gap.max()):.1e}); raise max_iterations"
    )


class ActiveSet(Protocol):
    """The structures whose weighted mean the projection is."""

    @property
    def structures(self) -> Tensor: ...

    @property
    def weights(self) -> Tensor: ...


@dataclass(frozen=True)
class SparseMAPSolution:
    """A projection onto the marginal polytope, with the proof that it is one.

    Attributes:
        mu: the projection, `[..., *parts]`, differentiable in the scores.
        gap: the duality gap `max over z of <s - mu, z - mu>`, `[...]`, float64: the squared distance to the
            exact projection is at most this.
        oracle_calls: how often the argmax was called for each example, `[...]`.
        converged: whether no structure improves beyond rounding, `[...]`; False where an iteration limit was hit.
        active_set: `structures` and `weights` in the form that the solver keeps them in.
    """

    mu: Tensor
    gap: Tensor
    oracle_calls: Tensor
    converged: Tensor
    active_set: ActiveSet

    @property
    def structures(self) -> Tensor:
        """The active set, `[..., k, *parts]`: mu is their weighted mean. Unused slots are zero."""
        return self.active_set.structures

    @property
    def weights(self) -> Tensor:
        """`[..., k]`, float64, positive for the active structures and zero for unused slots."""
        return self.active_set.weights


@dataclass(frozen=True)
class DenseSet:
    """An active set as `SparseMAPSolution` shows it."""

    structures: Tensor
    weights: Tensor
