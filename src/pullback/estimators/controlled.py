"""Gradients made from several samples together, with a linear control variate by the Jacobian of the marginals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator
from pullback.estimators.baselines import Point, mean_of_others
from pullback.estimators.checks import example_shape, losses_of, warn_if_unused
from pullback.estimators.decoder import Decoder
from pullback.estimators.forward import Gammas, forward_losses
from pullback.estimators.starts import FromSample
from pullback.inference._torch.derivatives import may_be_differentiated, transforming
from pullback.structures import Structure

Product = Callable[[Tensor], Tensor]
"""From a vector v to J_Marg(s)' v, both of the shape of the scores."""


@dataclass(frozen=True)
class Draws:
    """The samples of one batch with their losses and gradients, in the backward pass; without derivatives.

    Attributes:
        losses: `[samples, B]`, or `[samples]` for a single structure without a batch.
        offsets: d_i = z_i - Marg(s), `[samples, B, ..., *parts]`.
        gammas: the gradient of each sample's loss, of that shape.
        controls: g_i, gradients that do not depend on z_i, of that shape.
        product: from v to J_Marg(s)' v.
    """

    losses: Tensor
    offsets: Tensor
    gammas: Tensor
    controls: Tensor
    product: Product


def controlled_losses(
    structure: Structure,
    scores: Tensor,
    downstream: Downstream,
    gradient: Callable[[Draws], Tensor],
    samples: int,
    point: Point | None,
    owner: Estimator | None = None,
) -> Tensor:
    """The mean loss of the samples, `[B]`, whose gradient for the scores is made from all samples together.

    Args:
        structure: the structure.
        scores: `[B, ..., *parts]`.
        downstream: called once per sample, and before that at Marg(s) if the point is `marginals`.
        gradient: from the draws to the gradient of one example's loss, of the shape of the scores.
        samples: the number of samples per example; at least two for controls from other samples.
        point: where the controls are taken; None for controls of zero.
        owner: the estimator, if it needs losses that depend on z, and warns where they do not.
    """
    seen: list[Tensor] = []

    def remembered(z: Tensor) -> Tensor:
        losses = losses_of(structure, scores, downstream(z.clone()))  # the decoder may write into z
        if owner is not None:
            warn_if_unused(owner, downstream, losses, z)
        seen.append(losses.detach())
        return losses

    start, fixed, examples = FromSample(samples), scores.detach(), len(example_shape(structure, scores))
    if not may_be_differentiated(scores):
        return forward_losses(structure, fixed, remembered, start, lambda scores, z, gamma: gamma)
    mu, product = _marginals_and_product(structure, fixed)
    once = Gammas(structure.allowed(fixed), examples)
    at_mu = once.read(Decoder(structure, scores, downstream).gamma(mu)) if point == "marginals" else None

    def rule(scores: Tensor, z: Tensor, gamma: Tensor) -> Tensor:
        several = int(samples > 1)
        each = Gammas(structure.allowed(scores), several + examples)
        gammas, offsets = (x if several else x[None] for x in (each.read(gamma), z - mu))
        if point == "samples":
            controls = mean_of_others(gammas)
        else:
            controls = torch.zeros_like(gammas) if at_mu is None else at_mu.expand_as(gammas)
        found = gradient(Draws(torch.stack(seen), offsets, gammas, controls, product)).to(gamma.dtype)
        return each.mark(once.mark(found).expand_as(gamma))

    return forward_losses(structure, scores, remembered, start, rule)


def _marginals_and_product(structure: Structure, fixed: Tensor) -> tuple[Tensor, Product]:
    if transforming():
        mu, backward = torch.func.vjp(structure.marginals, fixed)[:2]
        return mu, lambda v: backward(v)[0]
    with torch.enable_grad():
        leaf = fixed.detach().requires_grad_()
        mu = structure.marginals(leaf)

    def product(v: Tensor) -> Tensor:
        return torch.autograd.grad(mu, leaf, v.to(mu.dtype), retain_graph=True)[0]

    return mu.detach(), product
