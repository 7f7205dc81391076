"""alpha-entmax (Peters et al., 2019): sparse averages of classes between softmax and sparsemax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.estimators.base import Layer
from pullback.estimators.checks import above_one, categorical_only
from pullback.inference._torch.derivatives import in_forward_mode, keep
from pullback.structures import Structure

_HALF = (torch.float16, torch.bfloat16)


class Entmax(Layer):
    """alpha-entmax, for a categorical: a sparse average of classes.

        z = argmax over p in the simplex of <s, p> + H_alpha(p),
            H_alpha(p) = sum over j of (p_j - p_j^alpha) / (alpha (alpha - 1)),
          = max((alpha - 1) s - tau, 0)^(1 / (alpha - 1)),  tau such that z sums to one,
        gradient J' gamma,    J = diag(r) - r r' / sum(r),  r = z^(2 - alpha) on the support of z

    It is softmax as alpha tends to 1, and sparsemax at alpha = 2. By sorting, exactly, at alpha = 1.5, and by
    bisection elsewhere. A score of `-inf` forbids a class: probability and gradient are exactly zero. Half precision
    is computed in float32.

    Args:
        alpha: > 1.

    >>> import torch
    >>> from pullback import Categorical
    >>> Entmax()(Categorical(), torch.tensor([[1.0, 0.5, -2.0]]))
    tensor([[0.6740, 0.3260, 0.0000]])
    """

    def __init__(self, alpha: float = 1.5) -> None:
        self.alpha = above_one(self, "alpha", alpha, "Marginals() is softmax, the limit at 1")

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        categorical_only(self, structure, "SparseMAP, a sparse average of every structure")
        structure.log_partition(scores.detach())  # checks the scores as every operation does
        wide = scores.float() if scores.dtype in _HALF else scores
        result = scores.dtype
        if result in _HALF and torch.is_autocast_enabled(scores.device.type):
            result = torch.float32
        function = _EntmaxForward if in_forward_mode() else _Entmax
        found: Tensor = function.apply(wide, self.alpha)  # type: ignore[no-untyped-call]
        return found.to(result)

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return self(structure, scores)


class _Entmax(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, alpha: float) -> Tensor:
        scaled = (s - s.amax(-1, keepdim=True)) * (alpha - 1)
        p = _by_sorting(scaled) if alpha == 1.5 else _by_bisection(scaled, alpha)
        return p / p.sum(-1, keepdim=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        keep(ctx, output)
        ctx.alpha = inputs[1]

    @staticmethod
    def backward(ctx: Any, gamma: Tensor) -> tuple[Tensor, None]:
        return _jacobian(ctx.saved_tensors[0], ctx.alpha, gamma), None


class _EntmaxForward(_Entmax):
    """With forward mode, which `torch.compile` does not take."""

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return _jacobian(ctx.saved_tensors[0], ctx.alpha, tangent)


def _jacobian(p: Tensor, alpha: float, direction: Tensor) -> Tensor:
    """J v, with J symmetric."""
    inside = p > 0
    r = torch.where(inside, torch.where(inside, p, 1.0) ** (2 - alpha), 0.0)
    moved = r * torch.where(inside, direction, 0.0)
    return moved - r * (moved.sum(-1, keepdim=True) / r.sum(-1, keepdim=True))


def _by_sorting(x: Tensor) -> Tensor:
    """max(x - tau, 0)^2 with the tau that makes it sum to one, x = s / 2, at most 0 with a zero among them."""
    ordered = x.clamp_min(-2.0).sort(-1, descending=True).values  # below -1 nothing is in the support
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    mean, square = ordered.cumsum(-1) / k, ordered.square().cumsum(-1) / k
    spread = k * (square - mean.square())
    tau = mean - ((1 - spread) / k).clamp_min(0.0).sqrt()
    size = (tau <= ordered).sum(-1, keepdim=True)
    return (x - tau.gather(-1, size - 1)).clamp_min(0.0).square()


def _by_bisection(x: Tensor, alpha: float) -> Tensor:
    """max(x - tau, 0)^(1 / (alpha - 1)), tau in [-1, 0] by bisection, x = (alpha - 1) s, at most 0 with a zero among them."""
    power = 1 / (alpha - 1)
    low = torch.full_like(x[..., :1], -1.0)  # there the largest alone is 1
    width = torch.ones_like(low)
    for _ in range(64 if x.dtype == torch.float64 else 32):
        width = width / 2
        middle = low + width
        low = torch.where((x - middle).clamp_min(0.0).pow(power).sum(-1, keepdim=True) >= 1, middle, low)
    return (x - low).clamp_min(0.0).pow(power)
