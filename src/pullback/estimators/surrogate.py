"""Autograd functions that give the scores a surrogate gradient, weighted as the caller weights the losses.

Each makes zeros of the shape of the losses that depend on the scores in the autograd graph. Added to the losses,
their incoming gradient is the weight w of each example's loss.

They work under `torch.func.grad` and `vjp`. Forward mode and `torch.vmap` are errors that say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from pullback.estimators.checks import example_shape
from pullback.inference._torch.derivatives import apply, in_forward_mode, is_finite, straight
from pullback.structures import Structure

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From scores, z and gamma to the surrogate gradient of one example's loss, all of the shape of the scores."""
Point = Callable[[Structure, Tensor], Tensor]
"""From a structure and scores to what the decoder sees, of the shape of the scores."""


def _no_forward_mode(scores: Tensor) -> None:
    if forward_ad.unpack_dual(scores).tangent is not None:
        raise NotImplementedError(
            "a surrogate gradient has no forward mode (torch.func.jvp): it is defined by what a backward pass returns. "
            "Use torch.func.grad or vjp, or a relaxation (Marginals, SparseMAP)"
        )


def attach(structure: Structure, losses: Tensor, scores: Tensor, surrogate: Tensor) -> Tensor:
    """The losses, `[B]`, whose gradient for the scores is w * surrogate on allowed parts; NaN there where the loss is NaN."""
    if in_forward_mode():
        _no_forward_mode(scores)
    failed = _like(losses.detach().isnan(), surrogate)
    surrogate = torch.where(failed, torch.nan, surrogate)
    surrogate = torch.where(structure.allowed(scores.detach()), surrogate, 0.0)
    zero: Tensor = apply(_Attached, scores, surrogate, example_shape(structure, scores))
    return losses + zero.to(losses.dtype)


def point_with(
    structure: Structure, scores: Tensor, point: Point, rule: Rule, *, examples: int | None
) -> tuple[Tensor, Tensor]:
    """Z = point(structure, scores), whose gradient for the scores follows a rule from gamma, and zeros for the weights.

    With w the weight of each example's loss, the incoming gradient of z is w * gamma, and the gradient is
    w * rule(gamma): zero where w is zero.

    Args:
        structure: the structure.
        scores: `[B, ..., *parts]`, or `[samples, B, ..., *parts]`.
        point: what the decoder sees, called once.
        rule: called in the backward pass, without gradients.
        examples: how many leading dimensions have losses of their own: the shape of the zeros, which must be added to
            the losses by `with_weights`. None: w is taken to be one, and gamma is the incoming gradient itself.
    """
    if in_forward_mode():
        _no_forward_mode(scores)
    return apply(_PointWith, scores, structure, point, rule, examples)  # type: ignore[no-any-return]


def linear(scores: Tensor, value: Tensor, rule: Callable[[Tensor], Tensor]) -> Tensor:
    """`value`, of the shape of the scores, whose gradient for the scores is a rule of the incoming one, linear in it."""
    if in_forward_mode():
        _no_forward_mode(scores)
    return apply(_Linear, scores, value, rule)  # type: ignore[no-any-return]


def with_weights(losses: Tensor, zero: Tensor) -> Tensor:
    """The losses, which send their weights to the zeros; NaN for a loss that is NaN, whatever its gradient."""
    return losses + apply(_NaNForNaN, zero, losses.detach()).to(losses.dtype)  # type: ignore[no-any-return]


class _Surrogate(torch.autograd.Function):
    """Raises errors for the transforms that these functions do not support."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "torch.vmap over a surrogate gradient is not supported: put the mapped dimension into the batch, the first "
            "dimension of the scores, or use a relaxation (Marginals, SparseMAP)"
        )


@straight
class _Attached(_Surrogate):
    @staticmethod
    def forward(scores: Tensor, surrogate: Tensor, shape: tuple[int, ...]) -> Tensor:
        return _zeros(surrogate, shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Any, ...]:
        scores, surrogate = ctx.saved_tensors
        with torch.no_grad():
            gradient = _weighted(surrogate, weights)
        return _once(gradient, scores), None, None


@straight
class _PointWith(_Surrogate):
    @staticmethod
    def forward(scores: Tensor, structure: Structure, point: Point, rule: Rule, examples: int | None) -> tuple[Tensor, Tensor]:
        z = point(structure, scores)
        return z, _zeros(z, tuple(scores.shape[: examples or 0]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0], output[0])
        ctx.rule, ctx.weighted = inputs[3], inputs[4] is not None

    @staticmethod
    def backward(ctx: Any, incoming: Tensor, weights: Tensor) -> tuple[Any, ...]:
        scores, z = ctx.saved_tensors
        with torch.no_grad():
            if ctx.weighted:
                w = _like(weights, incoming)
                usual = is_finite(weights / weights)  # but for masked or failed examples
                gamma = incoming / w if usual else torch.where(w == 0, 0.0, incoming / torch.where(w == 0, 1.0, w))
                gradient = ctx.rule(scores, z, gamma.to(z.dtype))
                gradient = w * gradient if usual else _weighted(gradient, weights)
            else:
                gradient = ctx.rule(scores, z, incoming)
        return _once(gradient, scores), None, None, None, None


@straight
class _Linear(_Surrogate):
    @staticmethod
    def forward(scores: Tensor, value: Tensor, rule: Callable[[Tensor], Tensor]) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.rule = inputs[2]

    @staticmethod
    def backward(ctx: Any, incoming: Tensor) -> tuple[Any, ...]:
        (scores,) = ctx.saved_tensors
        with torch.no_grad():
            gradient = ctx.rule(incoming)
        return _once(gradient, scores), None, None


@straight
class _NaNForNaN(_Surrogate):
    """The zeros; their weights become NaN where the loss is NaN and counts."""

    @staticmethod
    def forward(zero: Tensor, losses: Tensor) -> Tensor:
        return zero.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Any, ...]:
        (losses,) = ctx.saved_tensors
        if is_finite(losses):
            return weights, None
        return torch.where(losses.isnan() & (weights != 0), torch.nan, weights), None


class _Once(_Surrogate):
    """The gradient itself, whose own derivative is an error rather than silently zero."""

    @staticmethod
    def forward(gradient: Tensor, scores: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            "a surrogate gradient has no second derivative: differentiate once (drop create_graph=True), "
            "or use a relaxation (Marginals, SparseMAP)"
        )


def _once(gradient: Tensor, scores: Tensor) -> Tensor:
    gradient = gradient.to(scores.dtype)
    return apply(_Once, gradient, scores) if torch.is_grad_enabled() else gradient


def _zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros for the weights, which half precision might not hold."""
    return torch.zeros(shape, dtype=torch.promote_types(like.dtype, torch.float32), device=like.device)


def _like(weights: Tensor, values: Tensor) -> Tensor:
    return weights.reshape(weights.shape + (1,) * (values.dim() - weights.dim()))


def _weighted(surrogate: Tensor, weights: Tensor) -> Tensor:
    w = _like(weights, surrogate)
    return torch.where((w == 0) | (surrogate == 0), 0.0, w * surrogate)
