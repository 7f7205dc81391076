"""One of K classes, as a one-hot vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from pullback.inference._torch import derivatives
from pullback.inference._torch.transforms import is_mapped
from pullback.inference.front.family import Family
from pullback.inference.front.layout import Flat
from pullback.inference.simplex.family import SIMPLEX
from pullback.inference.sparsemap.solution import SparseMAPSolution
from pullback.structures.checks import check_limit, repeated
from pullback.structures.family import FamilyStructure
from pullback.structures.top import TopK, check_count, from_parts


class Categorical(FamilyStructure):
    """Z = {e_1, ..., e_K}, the vertices of the simplex; scores are `[..., K]`.

    The argmax is one-hot (the first of equals), the marginals are softmax, SparseMAP is sparsemax.
    A score of `-inf` forbids a class.

    Args:
        validate: check the values of the scores (NaN, all classes forbidden) at the price of a pass over
            them, and of a synchronisation on a GPU. The default is to check on a CPU only.

    >>> Categorical().sparsemap(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """

    family: ClassVar[Family] = SIMPLEX

    def __init__(self, *, validate: bool | None = None) -> None:
        super().__init__(validate=validate)

    def argmax(self, scores: Tensor) -> Tensor:
        flat = self._flat(scores)
        s = flat.scores.detach()
        best, place = s.max(-1, keepdim=True)
        z = torch.zeros_like(s, memory_format=torch.contiguous_format)
        # torch.vmap has no rule for the second one, which is many times faster
        z = z.scatter(-1, place, 1.0) if derivatives.transforming() else z.scatter_(-1, place, 1.0)
        return flat.restore(z if self._checked(flat, best) else z + 0.0 * best)  # NaN without a finite best score

    def marginals(self, scores: Tensor) -> Tensor:
        flat = self._differentiated(scores)
        mu = _softmax(flat.scores)
        self._checked(flat, mu.detach().select(-1, 0))
        return flat.restore(mu)

    def log_partition(self, scores: Tensor) -> Tensor:
        flat = self._differentiated(scores)
        best = flat.scores.detach().amax(-1, keepdim=True)  # apart, so that its size does not round the gradient
        self._checked(flat, best)
        return flat.restore((flat.scores - best).logsumexp(-1) + best.squeeze(-1))

    def entropy(self, scores: Tensor) -> Tensor:
        flat = self._differentiated(scores)
        log_p = flat.scores.log_softmax(-1)
        p = log_p.exp()
        self._checked(flat, p.detach().select(-1, 0))
        finite = torch.where(p > 0, log_p, 0.0)  # without probability: -inf, or a mask too large to be multiplied
        return flat.restore(-(p * finite).sum(-1))

    def contains(self, z: Tensor) -> Tensor:
        self.family.layout.check(z, "z")
        return (((z == 0) | (z == 1)).all(-1)) & (z.sum(-1) == 1)

    def _log_partition(self, scores: Tensor) -> Tensor:
        return self.log_partition(scores.double())

    def _feasible(self, scores: Tensor) -> Tensor:
        return (scores.detach() != -torch.inf).any(-1)

    def _log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        self._check_same_shape(scores, z)
        flat = self._differentiated(scores)
        log_p = flat.scores.log_softmax(-1)
        self._checked(flat, log_p.detach().select(-1, 0).exp())
        log_p = flat.reshape(log_p)
        return self.score(log_p, z.to(log_p.dtype)).to(flat.dtype)

    def sparsemap(
        self,
        scores: Tensor,
        *,
        warm_start: Tensor | SparseMAPSolution | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> Tensor:
        check_limit(max_iterations, tolerance)
        flat = self._flat(scores)
        mu = self._call("project", flat)
        self._checked(flat, mu.detach().select(-1, 0))
        return flat.restore(mu)

    def sample(self, scores: Tensor, generator: torch.Generator | None = None, *, samples: int | None = None) -> Tensor:
        flat = self._flat(repeated(scores, samples, generator))
        s = flat.scores.detach()
        if generator is None:  # an explicit None would not compile for batches of any size
            uniform = torch.rand(s.shape, dtype=torch.float64, device=s.device)
        else:
            uniform = torch.rand(s.shape, dtype=torch.float64, device=s.device, generator=generator)
        gumbel = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(torch.float64).tiny)))
        return self.argmax(flat.reshape(s + gumbel)).to(flat.dtype)

    def topk(self, scores: Tensor, k: int) -> TopK:
        """The k best classes, best first, the first of equals first."""
        k = check_count(k)
        flat = self._flat(scores)
        ordered = flat.scores.detach().double().sort(dim=-1, descending=True, stable=True)
        kept, missing = min(k, flat.scores.shape[1]), max(k - flat.scores.shape[1], 0)
        totals = torch.nn.functional.pad(ordered.values[:, :kept], (0, missing), value=-torch.inf)
        classes = torch.nn.functional.pad(ordered.indices[:, :kept], (0, missing), value=flat.scores.shape[1])
        parts = torch.where(totals == -torch.inf, flat.scores.shape[1], classes)
        totals = torch.where(totals[:, :1].isfinite(), totals, torch.nan)
        self._checked(flat, totals[:, 0])
        return from_parts(flat, parts[:, :, None], totals)

    def local_projection(self, scores: Tensor) -> Tensor:
        """Sparsemax: the local polytope of one-hot vectors is the simplex itself. No gradient."""
        return self.sparsemap(scores.detach())

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        """The K one-hot vectors, `[K, K]`."""
        return torch.eye(n)

    def _decompose(self, mu: Tensor) -> _Classes:
        return _Classes(mu)

    def _differentiated(self, scores: Tensor) -> Flat:
        """Scores as one batch. Rows that fail without an error have no gradient: 0 times theirs would be NaN in weights that
        all rows share.
        """
        flat = self._flat(scores)
        if torch.is_grad_enabled() and flat.scores.requires_grad and not self._checks(flat):
            constant = flat.scores.detach()
            flat.scores = torch.where(constant.amax(-1, keepdim=True).isfinite(), flat.scores, constant)
        return flat

    def _checks(self, flat: Flat) -> bool:
        """Whether values are checked: not inside of `torch.compile` and `torch.vmap`."""
        if not self._validates(flat):
            return False
        return derivatives.is_plain() or not (torch.compiler.is_compiling() or is_mapped(flat.scores))

    def _checked(self, flat: Flat, results: Tensor) -> bool:
        """Whether values are checked, and are right.

        Where a row has NaN, +inf or no finite score, all its results are NaN, and its best score is not finite: one number
        per row is enough, and the sum of all is not finite then. Where it is not for another reason, the scores tell.
        """
        if not self._checks(flat):
            return False
        if not math.isfinite(results.sum()):
            _raise_for(flat)
        return True


@dataclass(frozen=True)
class _Classes:
    """A point of the simplex is the mean of all classes, each with its own probability as weight."""

    mu: Tensor

    @property
    def structures(self) -> Tensor:
        return torch.diag_embed((self.mu > 0).to(self.mu.dtype))

    @property
    def weights(self) -> Tensor:
        return self.mu.double()


_VECTOR = 16  # below a vector of float32, PyTorch's softmax on a CPU works one number at a time: 5 to 10 times slower


def _softmax(s: Tensor) -> Tensor:
    if s.device.type != "cpu" or s.shape[-1] >= _VECTOR:
        return s.softmax(-1)
    p = (s - s.detach().amax(-1, keepdim=True)).exp()
    return p / p.sum(-1, keepdim=True)


def _raise_for(flat: Flat) -> None:
    best = flat.reshape(flat.scores.detach().amax(-1))
    problems = {
        "contains NaN; check the encoder that made it": best.isnan(),
        "contains +inf; scores must be finite, or -inf to forbid a class": best == torch.inf,
        "forbids every class (all -inf); at least one score must be finite": best == -torch.inf,
    }
    for problem, rows in problems.items():
        if rows.any():
            raise ValueError(f"scores{torch.nonzero(rows)[0].tolist() or ''} {problem}")
