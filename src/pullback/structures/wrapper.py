"""A structure around another one: everything the inner one can do, through one hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pullback.structures.base import Structure
from pullback.structures.top import TopK

if TYPE_CHECKING:
    from pullback.inference.sparsemap.solution import SparseMAPSolution


class StructureWrapper(Structure, checked=False):
    """Passes every operation to an inner structure, and calls `around` for each inference.

    A class that inherits from `Structure` and forwards only some operations would get slow default versions of the others.
    Here every operation is the inner one's, including those that only some structures have (`step_inside`, `heads`).

    Args:
        inner: the structure that does the work.

    >>> from pullback import Categorical
    >>> class Loud(StructureWrapper):
    ...     def around(self, operation, inference, scores):
    ...         print(operation)
    ...         return inference(scores)
    >>> Loud(Categorical()).argmax(torch.tensor([1.0, 3.0]))
    argmax
    tensor([0., 1.])
    """

    def __init__(self, inner: Structure) -> None:
        self.inner = inner
        self.event_dims, self.centre_dims = inner.event_dims, inner.centre_dims  # type: ignore[misc]

    def around(self, operation: str, inference: Callable[[Tensor], Any], scores: Tensor) -> Any:
        """Call `inference(scores)`, the inner structure's operation of this name; for subclasses to override."""
        return inference(scores)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        found = getattr(self.inner, name)
        if name not in ("step_inside", "local_projection"):
            return found
        return lambda scores, *args: self.around(name, lambda s: found(s, *args), scores)

    def argmax(self, scores: Tensor) -> Tensor:
        return self.around("argmax", self.inner.argmax, scores)

    def sparsemap(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> Tensor:
        options: Any = {"warm_start": warm_start, "max_iterations": max_iterations, "tolerance": tolerance}
        return self.around("sparsemap", lambda s: self.inner.sparsemap(s, **options), scores)

    def sparsemap_solution(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> SparseMAPSolution:
        options: Any = {"warm_start": warm_start, "max_iterations": max_iterations, "tolerance": tolerance}
        return self.around("sparsemap_solution", lambda s: self.inner.sparsemap_solution(s, **options), scores)

    def marginals(self, scores: Tensor) -> Tensor:
        return self.around("marginals", self.inner.marginals, scores)

    def log_partition(self, scores: Tensor) -> Tensor:
        return self.around("log_partition", self.inner.log_partition, scores)

    def entropy(self, scores: Tensor) -> Tensor:
        return self.around("entropy", self.inner.entropy, scores)

    def kl(self, scores: Tensor, other: Tensor) -> Tensor:
        return self.around("kl", lambda s: self.inner.kl(s, other), scores)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None, *, samples: int | None = None) -> Tensor:
        options: Any = {} if samples is None else {"samples": samples}
        return self.around("sample", lambda s: self.inner.sample(s, generator, **options), scores)

    def topk(self, scores: Tensor, k: int) -> TopK:
        return self.around("topk", lambda s: self.inner.topk(s, k), scores)

    def score(self, scores: Tensor, z: Tensor) -> Tensor:
        return self.around("score", lambda s: self.inner.score(s, z), scores)

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        return self.around("log_prob", lambda s: self.inner.log_prob(s, z), scores)

    def log_prob_within(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return self.around("log_prob_within", lambda s: self.inner.log_prob_within(s, allowed), scores)

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        return self.around("log_prob", lambda s: self.inner._log_prob(s, z), scores)

    def _product(self, scores: Tensor, z: Tensor) -> Tensor:
        return self.around("score", lambda s: self.inner._product(s, z), scores)

    def _gain(self, scores: Tensor, z: Tensor, other: Tensor) -> Tensor:
        return self.around("score", lambda s: self.inner._gain(s, z, other), scores)

    def _are_targets(self, mu: Tensor) -> Tensor:
        return self.inner._are_targets(mu)

    def _result_dtype(self, scores: Tensor) -> torch.dtype:
        return self.inner._result_dtype(scores)

    @property
    def validate(self) -> bool | None:  # type: ignore[override]
        return self.inner.validate

    def contains(self, z: Tensor) -> Tensor:
        return self.inner.contains(z)

    def allowed(self, scores: Tensor) -> Tensor:
        return self.around("allowed", self.inner.allowed, scores)

    def enumerate(self, *sizes: int) -> Tensor:
        return self.inner.enumerate(*sizes)
