"""Autograd functions that give the scores a surrogate gradient, weighted as the caller weights the losses.

Each makes zeros of the shape of the losses that depend on the scores in the autograd graph. Added to the losses,
their incoming gradient is the weight w of each example's loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.estimators.checks import example_shape
from pullback.structures import Structure

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From scores, z and gamma to the surrogate gradient of one example's loss, all of the shape of the scores."""


def attach(structure: Structure, losses: Tensor, scores: Tensor, surrogate: Tensor) -> Tensor:
    """The losses, `[B]`, whose gradient for the scores is w * surrogate."""
    zero: Tensor = _Attached.apply(scores, surrogate, example_shape(structure, scores))  # type: ignore[no-untyped-call]
    return losses + zero.to(losses.dtype)


def argmax_with(structure: Structure, scores: Tensor, rule: Rule, *, weighted: bool) -> tuple[Tensor, Tensor]:
    """The argmax, whose gradient for the scores follows a rule from gamma, and the zeros that carry the weights.

    With w the weight of each example's loss, the incoming gradient of z is w * gamma, and the gradient is
    w * rule(gamma): zero where w is zero.

    Args:
        structure: the structure.
        scores: `[B, ..., *parts]`.
        rule: called in the backward pass, without gradients.
        weighted: whether the zeros are added to the losses; else w is taken to be one, and gamma is the
            incoming gradient itself.
    """
    return _ArgmaxWith.apply(scores, structure, rule, weighted)  # type: ignore[no-untyped-call, no-any-return]


class _Attached(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, surrogate: Tensor, shape: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(scores, surrogate)
        return _zeros(surrogate, shape)

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Any, ...]:
        scores, surrogate = ctx.saved_tensors
        with torch.no_grad():
            gradient = _weighted(surrogate, weights)
        return _once(gradient, scores), None, None


class _ArgmaxWith(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, structure: Structure, rule: Rule, weighted: bool) -> tuple[Tensor, Tensor]:
        z = structure.argmax(scores)
        ctx.save_for_backward(scores, z)
        ctx.rule, ctx.weighted = rule, weighted
        return z, _zeros(z, example_shape(structure, scores))

    @staticmethod
    def backward(ctx: Any, incoming: Tensor, weights: Tensor) -> tuple[Any, ...]:
        scores, z = ctx.saved_tensors
        with torch.no_grad():
            if ctx.weighted:
                w = _like(weights, incoming)
                gamma = torch.where(w == 0, 0.0, incoming / torch.where(w == 0, 1.0, w)).to(z.dtype)
                gradient = _weighted(ctx.rule(scores, z, gamma), weights)
            else:
                gradient = ctx.rule(scores, z, incoming)
        return _once(gradient, scores), None, None, None


class _Once(torch.autograd.Function):
    """The gradient itself, whose own derivative is an error rather than silently zero."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, scores: Tensor) -> Tensor:
        return gradient

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            "a surrogate gradient has no second derivative: differentiate once (drop create_graph=True), "
            "or use a relaxation (Marginals, SparseMAP)"
        )


def _once(gradient: Tensor, scores: Tensor) -> Tensor:
    gradient = gradient.to(scores.dtype)
    return _Once.apply(gradient, scores) if torch.is_grad_enabled() else gradient  # type: ignore[no-untyped-call]


def _zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros for the weights, which half precision might not hold."""
    return torch.zeros(shape, dtype=torch.promote_types(like.dtype, torch.float32), device=like.device)


def _like(weights: Tensor, values: Tensor) -> Tensor:
    return weights.reshape(weights.shape + (1,) * (values.dim() - weights.dim()))


def _weighted(surrogate: Tensor, weights: Tensor) -> Tensor:
    w = _like(weights, surrogate)
    return torch.where(w == 0, 0.0, w * surrogate)
