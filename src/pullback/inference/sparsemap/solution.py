"""What a SparseMAP solver returns: the projection and its certificate."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class SparseMAPSolution:
    """A projection onto the marginal polytope, with the proof that it is one.

    Attributes:
        mu: the projection, `[..., *parts]`, differentiable in the scores.
        gap: the duality gap `max over z of <s - mu, z - mu>`, `[...]`, float64: half the squared distance
            to the exact projection is at most this.
        structures: the active set, `[..., k, *parts]`: mu is their weighted mean. Unused slots are zero.
        weights: `[..., k]`, float64, positive for the active structures and zero for unused slots.
        oracle_calls: how often the argmax was called for each example, `[...]`.
        converged: whether no structure improves beyond rounding, `[...]`; False where an iteration limit was hit.
    """

    mu: Tensor
    gap: Tensor
    structures: Tensor
    weights: Tensor
    oracle_calls: Tensor
    converged: Tensor
