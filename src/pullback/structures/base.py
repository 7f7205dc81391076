"""The contract of a structure: a set of 0/1 vectors, and exact inference over it."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from pullback.inference._torch.derivatives import transforming
from pullback.inference.front.layout import check_batches, check_tensor, result_dtype
from pullback.structures import members
from pullback.structures.checks import check_limit, of_one_shape
from pullback.structures.top import TopK, partitioned
from pullback.structures.within import log_prob_within

if TYPE_CHECKING:
    from pullback.inference.sparsemap.solution import SparseMAPSolution


class Structure(abc.ABC):
    """A set Z of vectors z in {0, 1}^K, with inference for scores s of its K parts.

    Scores and structures share one shape `[..., *parts]`; the last `event_dims` dimensions hold the
    parts, and the leading ones are a batch. A subclass must define `argmax`,

        argmax(s) = argmax over z in Z of <s, z>,

    and gets `sparsemap` and `score` for free. If it also defines a differentiable `log_partition`, it has `marginals`,
    `entropy`, `log_prob` and `kl`. All other methods are optional.

    >>> class Pair(Structure):
    ...     "Exactly two of K parts."
    ...     def argmax(self, scores):
    ...         best = scores.topk(2, dim=-1).indices
    ...         return torch.zeros_like(scores).scatter(-1, best, 1.0)
    >>> Pair().sparsemap(torch.tensor([1.0, 1.0, 1.0, -9.0]))
    tensor([0.6667, 0.6667, 0.6667, 0.0000])
    """

    event_dims: ClassVar[int] = 1
    centre_dims: ClassVar[tuple[int, ...] | None] = None
    """Dimensions over which all structures have the same sum: a constant added there changes no inference."""
    validate: bool | None = None
    """Whether values are checked, gold structures among them; None: on a CPU only, where that takes no synchronisation."""

    def __init_subclass__(cls, *, checked: bool = True, **kwargs: Any) -> None:
        """A structure of one's own gets an argmax that says if its result has another shape than the scores."""
        super().__init_subclass__(**kwargs)
        for name in {"argmax"} & cls.__dict__.keys() if checked else ():
            setattr(cls, name, of_one_shape(cls.__dict__[name]))

    @abc.abstractmethod
    def argmax(self, scores: Tensor) -> Tensor:
        """A best structure, `[..., *parts]` of zeros and ones in the dtype of the scores. No gradient."""

    def sparsemap(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> Tensor:
        """The Euclidean projection of the scores onto the marginal polytope, differentiable.

            argmin over mu in conv(Z) of ||mu - s||^2

        Args:
            scores: `[..., *parts]`.
            warm_start: where to start: structures of the shape of the scores, or an earlier solution.
            max_iterations: the largest number of argmax calls per example, by default 10 K + 1000 for K parts, at most 4000.
                Only nearly equal scores of many parts need more; examples that do are reported by `NotConverged`.
            tolerance: a duality gap that is small enough, an upper bound of the squared distance to the projection. The default
                is 1e-12 for float32 and half precision, and rounding for float64, below which no search goes. On a GPU, all
                searches go on to rounding. The solution says what was reached.
        """
        return self.sparsemap_solution(scores, warm_start=warm_start, max_iterations=max_iterations, tolerance=tolerance).mu

    def sparsemap_solution(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> SparseMAPSolution:
        """`sparsemap` with its certificate: the duality gap, the active set and the number of oracle calls."""
        from pullback.inference.sparsemap.generic import project

        check_limit(max_iterations, tolerance)
        return project(self, scores, warm_start=warm_start, max_iterations=max_iterations, tolerance=tolerance)

    def marginals(self, scores: Tensor) -> Tensor:
        """E[z] under p(z) proportional to exp(<s, z>), `[..., *parts]`, differentiable.

        By default the gradient of `log_partition`.
        """
        self._needs_log_partition("marginals")
        if transforming() or torch.compiler.is_compiling():
            return torch.func.grad(lambda s: self.log_partition(s).sum())(scores)
        differentiable = torch.is_grad_enabled() and scores.requires_grad
        with torch.inference_mode(False) if torch.is_inference_mode_enabled() else torch.enable_grad():
            # a copy, unlike scores.detach(), keeps tangents and can be differentiated in inference mode
            s = scores if scores.requires_grad and not scores.is_inference() else scores.clone().requires_grad_()
            log_z = self.log_partition(s)
            if not log_z.requires_grad:
                raise RuntimeError(
                    f"{type(self).__name__}.log_partition has no gradient; the marginals are its gradient: "
                    f"compute it with differentiable operations, or define {type(self).__name__}.marginals"
                )
            (mu,) = torch.autograd.grad(log_z.sum(), s, create_graph=differentiable)
        return mu

    def log_partition(self, scores: Tensor) -> Tensor:
        """Log of the sum over z in Z of exp(<s, z>), `[...]`, differentiable."""
        raise self._missing("log_partition")

    def entropy(self, scores: Tensor) -> Tensor:
        """The entropy of p(z) proportional to exp(<s, z>), in nats, `[...]`, differentiable.

            H = log Z - <s, mu>

        The default computes this formula in float64, on scores shifted by their maximum where the shift changes nothing,
        because the formula loses digits at large scores.
        """
        self._needs_log_partition("entropy")
        s = self._shifted(scores.double())
        return (self.log_partition(s) - self.score(s, self.marginals(s))).to(scores.dtype)

    def kl(self, scores: Tensor, other: Tensor) -> Tensor:
        """The Kullback-Leibler divergence from p(z) proportional to exp(<s, z>) to the one of other scores o, `[...]`, in nats.

            KL(p_s || p_o) = log Z(o) - log Z(s) + <s - o, Marg(s)>

        Differentiable in both. A part that both forbid contributes nothing. A part that only `other` forbids gives inf
        if it has positive probability.
        """
        scores, other = self._check_pair(scores, other)
        mu = self.marginals(scores)
        used = self.allowed(scores) & (mu != 0)
        apart = torch.where(used, scores - other, 0.0)
        # a probability of zero may be rounded to a few eps, which a large finite mask must not multiply
        apart = torch.where((apart < -1e6) & (mu.abs() < 16 * torch.finfo(mu.dtype).eps), 0.0, apart)
        dims = tuple(range(-self.event_dims, 0))
        infinite = (apart == torch.inf).any(dims)
        inner = (mu * torch.where(apart == torch.inf, 0.0, apart)).sum(dims)
        found = self.log_partition(other) - self.log_partition(scores) + inner
        found = torch.where(infinite, torch.inf, found)
        return found - torch.where(found < 0, found, 0.0).detach()  # rounding; the gradient stays

    def sample(self, scores: Tensor, generator: torch.Generator | None = None, *, samples: int | None = None) -> Tensor:
        """An exact sample of p(z) proportional to exp(<s, z>), `[..., *parts]`. No gradient.

        Args:
            scores: `[..., *parts]`.
            generator: of random numbers; PyTorch's own by default.
            samples: how many of each example, `[samples, ..., *parts]`; by default one, without that dimension.
        """
        raise self._missing("sample")

    def topk(self, scores: Tensor, k: int) -> TopK:
        """The k best structures of each example, best first, and their scores.

        The base class finds them by partitioning, with one `argmax` for each part and structure; of equal ones, the one
        found first comes first. It forces parts into a structure by a bonus on their scores, which costs digits in float32.
        """
        return partitioned(self, scores, k)

    def enumerate(self, *sizes: int) -> Tensor:
        """All of Z for small sizes, `[S, *parts]`: the oracle for tests by brute force."""
        raise self._missing("enumerate")

    def score(self, scores: Tensor, z: Tensor) -> Tensor:
        """<s, z>, `[...]`, for a structure or an average of structures; differentiable in both.

        A part that is neither allowed nor used contributes nothing, even if its score is -inf or NaN. Nor does padding,
        whatever z holds there.
        """
        return self._product(scores, z)

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        """Log p(z) = <s, z> - log Z, `[...]`, differentiable in the scores.

        With `validate`, a z that is not a structure is an error that names it: its "probability" would be no probability.
        """
        self._check_same_shape(scores, z)
        found = self._log_prob(scores, z)
        members.check(self, self._expanded(z, scores), "z", self.contains)
        return found

    def log_prob_within(self, scores: Tensor, allowed: Tensor) -> Tensor:
        """Log of the probability that z uses only allowed parts, `[...]`, differentiable in the scores.

            log sum over z in Z within `allowed` of exp(<s, z>) - log Z

        This is the likelihood of partial or ambiguous annotation, and the confidence in a part of a structure: with a k-th
        dimension in front of `allowed`, that of each of k of them. -inf where no structure is left, with a zero gradient.

        Args:
            scores: `[..., *parts]`.
            allowed: `[..., *parts]` of bool, of leading dimensions that broadcast; padding is not read.

        >>> from pullback import Subset
        >>> Subset(1).log_prob_within(torch.zeros(4), torch.tensor([True, True, True, False])).exp()
        tensor(0.7500)
        """
        return log_prob_within(self, scores, allowed)

    def contains(self, z: Tensor) -> Tensor:
        """Whether z is a structure, `[...]` of bool: zeros and ones that make up a member of Z; padding is not read.

        It takes one call of `argmax`: of all structures, z has the largest sum of 2z - 1 if it is one of them, and only then.

        >>> from pullback import Subset
        >>> Subset(2).contains(torch.tensor([[1, 0, 1], [1, 1, 1]]))
        tensor([ True, False])
        """
        return members.are_equal(self, z, self.argmax(members.signs(z)))

    def allowed(self, scores: Tensor) -> Tensor:
        """Which parts may be used at all, `[..., *parts]` of bool: not padding, not `-inf`."""
        return scores != -torch.inf

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        """`log_prob` without a look at z, which may be an average of structures."""
        return self.score(scores, z) - self.log_partition(scores)

    def _log_partition(self, scores: Tensor) -> Tensor:
        """`log_partition`, in float64 where that is known."""
        return self.log_partition(scores)

    def _unchecked_log_partition(self, scores: Tensor) -> Tensor | None:
        """`_log_partition`, not finite where there is no structure, which is no error; None where that is not known."""
        return None

    def _result_dtype(self, scores: Tensor) -> torch.dtype:
        """The dtype of what is returned for scores."""
        return result_dtype(scores)

    def _feasible(self, scores: Tensor) -> Tensor:
        """Whether some structure has no part that is forbidden, `[...]`."""
        free = torch.where(scores.detach() == -torch.inf, -torch.inf, 0.0)
        return self.score(free, self.argmax(free)) == 0

    def _product(self, scores: Tensor, z: Tensor) -> Tensor:
        """<s, z>, without what a structure may add to the score of z."""
        self._check_same_shape(scores, z)
        return self._inner(self._counts(scores, z), scores, z)

    def _gain(self, scores: Tensor, z: Tensor, other: Tensor) -> Tensor:
        """By how much the score of z is larger than that of another structure."""
        return self._product(scores, z - other)

    def _are_targets(self, mu: Tensor) -> Tensor:
        """Whether each of `[..., *parts]` is a structure, or may be an average of structures, `[...]` of bool."""
        return members.are_targets(self, mu)

    def _expanded(self, scores: Tensor, z: Tensor) -> Tensor:
        """Scores for structures whose leading dimensions broadcast against theirs: one for each where that is needed."""
        return scores

    def _why_not(self, z: Tensor, example: tuple[int, ...]) -> str:
        """Why one tensor, `[*parts]`, the example of a batch at this place, is not a structure."""
        if not ((z == 0) | (z == 1)).all():
            return "it has entries other than 0 and 1 (are scores and structures swapped?)"
        return "its parts do not make up a structure"

    def _inner(self, counts: Tensor, scores: Tensor, z: Tensor) -> Tensor:
        product = torch.where(counts, scores, 0.0) * torch.where(counts, z, 0)
        return product.sum(tuple(range(-self.event_dims, 0)), dtype=torch.float64).to(product.dtype)

    def _counts(self, scores: Tensor, z: Tensor) -> Tensor:
        """Which entries count in <s, z>: allowed parts, and forbidden ones that z has; NaN in z elsewhere is padding."""
        return self.allowed(scores) | ((z != 0) & (z == z))

    def _shifted(self, scores: Tensor) -> Tensor:
        """Scores less the largest allowed one along `centre_dims`, which changes no distribution."""
        if self.centre_dims is None or scores.numel() == 0:
            return scores
        top = torch.where(self.allowed(scores), scores, -torch.inf).amax(self.centre_dims, keepdim=True).detach()
        return scores - torch.where(top.isfinite(), top, 0.0)

    def _needs_log_partition(self, operation: str) -> None:
        if type(self).log_partition is Structure.log_partition:
            raise self._missing(operation, ", or a differentiable log_partition, from which it follows")

    def _missing(self, operation: str, instead: str = "") -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(
            f"{name} does not define `{operation}`. Define {name}.{operation}(scores){instead}, or use an estimator "
            f"that does not need it (with `argmax` alone: SPIGOT, STEIdentity, SparseMAP, Blackbox, IMLE, LPGD, "
            f"PerturbAndMAP, PerturbedArgmax)."
        )

    def _check_pair(self, scores: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """Two scores of one shape, broadcast if need be."""
        self._check_same_shape(scores, other, "other")
        scores, other = torch.broadcast_tensors(scores, other)
        return scores, other

    def _check_same_shape(self, scores: Tensor, z: Tensor, name: str = "z") -> None:
        check_tensor(scores, type(self).__name__)
        check_tensor(z, type(self).__name__, name)
        if scores.shape == z.shape:
            return
        if scores.shape[-self.event_dims :] != z.shape[-self.event_dims :]:
            raise ValueError(
                f"scores has shape {list(scores.shape)} and {name} {list(z.shape)}; "
                f"their last {self.event_dims} dimensions must agree"
            )
        check_batches(scores.shape[: -self.event_dims], z.shape[: -self.event_dims], "scores", name)
