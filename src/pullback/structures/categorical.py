"""One of K classes, as a one-hot vector."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.layout import result_dtype, working
from pullback.inference.simplex.family import SIMPLEX
from pullback.inference.torch_seam.transforms import is_mapped
from pullback.structures.base import Structure


class Categorical(Structure):
    """Z = {e_1, ..., e_K}, the vertices of the simplex; scores are `[..., K]`.

    The argmax is one-hot (the first of equals), the marginals are softmax, SparseMAP is sparsemax.
    A score of `-inf` forbids a class.

    Args:
        validate: check the values of the scores (NaN, all classes forbidden) at the price of a pass over
            them, and of a synchronisation on a GPU. The default is to check on a CPU only.

    >>> Categorical().sparsemap(torch.tensor([1.0, 0.5, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """

    def __init__(self, *, validate: bool | None = None) -> None:
        self.validate = validate

    def __repr__(self) -> str:
        return "Categorical()"

    def argmax(self, scores: Tensor) -> Tensor:
        s = self._prepare(scores.detach())
        z = torch.zeros_like(s, memory_format=torch.contiguous_format)
        return z.scatter_(-1, s.argmax(-1, keepdim=True), 1.0).to(result_dtype(scores))

    def marginals(self, scores: Tensor) -> Tensor:
        return _softmax(self._prepare(scores)).to(result_dtype(scores))

    def sparsemap(self, scores: Tensor, *, warm_start: object = None) -> Tensor:
        """Sparsemax, in closed form: mu = max(s - tau, 0) with tau such that mu sums to one."""
        s = self._prepare(scores)
        return SIMPLEX.project(s.reshape(-1, s.shape[-1]), False).reshape(s.shape).to(result_dtype(scores))

    def log_partition(self, scores: Tensor) -> Tensor:
        s = self._prepare(scores)
        best = s.detach().amax(-1, keepdim=True)  # apart, so that its size does not round the gradient
        return ((s - best).logsumexp(-1) + best.squeeze(-1)).to(result_dtype(scores))

    def entropy(self, scores: Tensor) -> Tensor:
        s = self._prepare(scores)
        log_p = s.log_softmax(-1)
        finite = torch.where(s == -torch.inf, 0.0, log_p)
        return -(log_p.exp() * finite).sum(-1).to(result_dtype(scores))

    def log_prob(self, scores: Tensor, z: Tensor) -> Tensor:
        s = self._prepare(scores)
        return self.score(s.log_softmax(-1), z.to(s.dtype)).to(result_dtype(scores))

    def sample(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        s = self._prepare(scores.detach())
        uniform = torch.rand(s.shape, dtype=torch.float64, device=s.device, generator=generator)
        gumbel = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(torch.float64).tiny)))
        return self.argmax(s + gumbel).to(result_dtype(scores))

    def enumerate(self, n: int) -> Tensor:  # type: ignore[override]
        return torch.eye(n)

    def _prepare(self, scores: Tensor) -> Tensor:
        if scores.dim() == 0 or scores.shape[-1] == 0:
            raise ValueError(f"scores has shape {list(scores.shape)}; a Categorical needs [..., K] with K > 0")
        s = working(scores)
        wanted = s.device.type == "cpu" if self.validate is None else self.validate
        if wanted and not torch.compiler.is_compiling() and not is_mapped(s):
            _check_values(s.detach())
        return s


_VECTOR = 16  # below a vector of float32, PyTorch's softmax on a CPU works one number at a time: 5 to 10 times slower


def _softmax(s: Tensor) -> Tensor:
    if s.device.type != "cpu" or s.shape[-1] >= _VECTOR:
        return s.softmax(-1)
    p = (s - s.detach().amax(-1, keepdim=True)).exp()
    return p / p.sum(-1, keepdim=True)


def _check_values(s: Tensor) -> None:
    best = s.amax(-1)
    if torch.isfinite(best).all():
        return
    problems = {
        "contains NaN; check the encoder that made it": best.isnan(),
        "contains +inf; scores must be finite, or -inf to forbid a class": best == torch.inf,
        "forbids every class (all -inf); at least one score must be finite": best == -torch.inf,
    }
    for problem, rows in problems.items():
        if rows.any():
            raise ValueError(f"scores{torch.nonzero(rows)[0].tolist() or ''} {problem}")
