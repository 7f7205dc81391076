"""The contract of a structure: a set of 0/1 vectors, and exact inference over it."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pullback.inference.sparsemap.solution import SparseMAPSolution


class Structure(abc.ABC):
    """A set Z of vectors z in {0, 1}^K, with inference for scores s of its K parts.

    Scores and structures share one shape `[..., *parts]`; the last `event_dims` dimensions hold the
    parts, the leading ones are a batch. A subclass must define `argmax`,

        argmax(s) = argmax over z in Z of <s, z>,

    and gets `sparsemap` and `score` for free. Each other method is one more operation the structure may offer.

    >>> class Pair(Structure):
    ...     "Exactly two of K parts."
    ...     def argmax(self, scores):
    ...         best = scores.topk(2, dim=-1).indices
    ...         return torch.zeros_like(scores).scatter(-1, best, 1.0)
    >>> Pair().sparsemap(torch.tensor([1.0, 1.0, 1.0, -9.0]))
    tensor([0.6667, 0.6667, 0.6667, 0.0000])
    """

    event_dims: ClassVar[int] = 1

    @abc.abstractmethod
    def argmax(self, scores: Tensor) -> Tensor:
        """A best structure, `[..., *parts]` of zeros and ones in the dtype of the scores. No gradient."""

    def sparsemap(self, scores: Tensor, *, warm_start: Tensor | SparseMAPSolution | None = None) -> Tensor:
        """The Euclidean projection of the scores onto the marginal polytope, differentiable.

            argmin over mu in conv(Z) of ||mu - s||^2

        Args:
            scores: `[..., *parts]`.
            warm_start: where to start: structures of the shape of the scores, or an earlier solution.
        """
        return self.sparsemap_solution(scores, warm_start=warm_start).mu

    def sparsemap_solution(
        self, scores: Tensor, *, warm_start: Tensor | SparseMAPSolution | None = None
    ) -> SparseMAPSolution:
        """`sparsemap` with its certificate: the duality gap, the active set and the number of oracle calls."""
        from pullback.inference.sparsemap.generic import project

        return project(self, scores, warm_start=warm_start)

    def step_inside(self, scores: Tensor, mu: Tensor, step: Tensor) -> tuple[Tensor, Tensor] | None:
        """Where mu - step, near mu = Marg(s), is projected onto the marginal polytope by a shift along its affine hull.

        That is so where the shifted point is inside, and there it saves the search for structures that make it up.

        Args:
            scores: `[..., *parts]`.
            mu: their marginals.
            step: `[..., *parts]`; only allowed parts are read.

        Returns:
            `moved`, the part of the step along the affine hull, `[..., *parts]`, and `inside`, `[...]` of bool: where it is
            true, sparsemap(mu - step) = mu - moved for sure. False claims nothing. None, the default, if the structure
            has no quicker way to know than `sparsemap`. No gradient.
        """
        return None

    def local_projection(self, scores: Tensor) -> Tensor:
        """The Euclidean projection onto a simpler set that contains the marginal polytope, `[..., *parts]`. No gradient.

        It is `sparsemap` wherever it is an average of structures; by default it is `sparsemap`.
        """
        return self.sparsemap(scores.detach())

    def marginals(self, scores: Tensor) -> Tensor:
        """E[z] under p(z) proportional to exp(<s, z>), `[..., *parts]`, differentiable."""
        raise self._missing("marginals")

    def log_partition(self, scores: Tensor) -> Tensor:
        """Log of the sum over z in Z of exp(<s, z>), `[...]`, differentiable."""
        raise self._missing("log_partition")

    def entropy(self, scores: Tensor) -> Tensor:
        """The entropy of p(z) proportional to exp(<s, z>), in nats, `[...]`, differentiable."""
        raise self._missing("entropy")

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """An exact sample of p(z) proportional to exp(<s, z>), `[..., *parts]`. No gradient."""
        raise self._missing("sample")

    def enumerate(self, n: int) -> Tensor:
        """All of Z for small sizes, `[S, *parts]`: the oracle for tests by brute force."""
        raise self._missing("enumerate")

    def score(self, scores: Tensor, z: Tensor) -> Tensor:
        """<s, z>, `[...]`, for a structure or an average of structures; differentiable in both.

        A part that is neither allowed nor used contributes nothing, whatever its score: 0 * -inf is 0 here.
        """
        self._check_same_shape(scores, z)
        relevant = self.allowed(scores) | (z != 0)
        dims = tuple(range(-self.event_dims, 0))
        return (torch.where(relevant, scores, 0.0) * z).sum(dims)

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        """Log p(z) = <s, z> - log Z, `[...]`, differentiable in the scores."""
        return self.score(scores, z) - self.log_partition(scores)

    def allowed(self, scores: Tensor) -> Tensor:
        """Which parts may be used at all, `[..., *parts]` of bool: not padding, not `-inf`."""
        return scores != -torch.inf

    def _missing(self, operation: str) -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(
            f"{name} does not define `{operation}`. Define {name}.{operation}(scores), or use an estimator "
            f"that does not need it (with `argmax` alone: SPIGOT, STEIdentity, SparseMAP)."
        )

    def _check_same_shape(self, scores: Tensor, z: Tensor) -> None:
        if scores.shape[-self.event_dims :] != z.shape[-self.event_dims :]:
            raise ValueError(
                f"scores has shape {list(scores.shape)} and z {list(z.shape)}; "
                f"their last {self.event_dims} dimensions must agree"
            )
