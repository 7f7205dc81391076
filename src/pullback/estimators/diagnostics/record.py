"""The results of a diagnosis."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Diagnosis:
    """An estimator's gradient g, over many draws, compared with an exact gradient e, both of the sum of the losses.

    Attributes:
        exact: e, of the shape of the scores, float64.
        mean: the mean of the draws, of the shape of the scores.
        bias: ||mean - e||.
        cosine: the cosine between the mean and e.
        single_cosine: the mean over draws of the cosine between g and e; a zero g counts as 0.
        variance: the mean over draws of ||g - mean||^2.
        zeros: the share of zero entries of g on allowed parts.
        decoder_calls: calls of `downstream` in one training step.
        inference_calls: calls of the structure's operations in one training step, forward and backward.
        scaled_bias: ||c mean - e|| with the c that makes it smallest.
        scaled_error: the square root of the mean over draws of ||c g - e||^2 with the c that makes it smallest.
        standard_error: the standard error of `exact`, of the shape of the scores, if it is itself an estimate
            (`reference="perturbed"`).
        operations: `inference_calls` by operation.
        draws: the number of draws; 1 if the estimator draws no noise.
    """

    exact: Tensor = field(repr=False)
    mean: Tensor = field(repr=False)
    bias: float
    cosine: float
    single_cosine: float
    variance: float
    zeros: float
    decoder_calls: int
    inference_calls: int
    scaled_bias: float
    scaled_error: float
    standard_error: Tensor | None = field(default=None, repr=False)
    operations: dict[str, int] = field(default_factory=dict)
    draws: int = 1


def measured(draws: Tensor, exact: Tensor, allowed: Tensor, calls: dict[str, int], standard_error: Tensor | None) -> Diagnosis:
    """The measures of gradients.

    Args:
        draws: `[draws, ...]`, each of the shape of the scores.
        exact: of the shape of the scores.
        allowed: which parts count for the share of zeros.
        calls: by operation; `downstream` is the decoder.
        standard_error: of the exact gradient.
    """
    mean, operations = draws.mean(0), {name: count for name, count in calls.items() if name != "downstream"}
    each, e = draws.flatten(1), exact.flatten()
    square, inner = each.square().sum(1), each @ e
    size = e.norm()
    products = square.sqrt() * size
    cosines = (inner / products.masked_fill(products == 0, math.inf)).mean()
    return Diagnosis(
        exact=exact,
        mean=mean,
        bias=(mean - exact).norm().item(),
        cosine=_cosine(mean.flatten(), e),
        single_cosine=cosines.item(),
        variance=(each - mean.flatten()).square().sum(1).mean().item(),
        zeros=(draws[:, allowed] == 0).double().mean().item() if allowed.any() else 0.0,
        decoder_calls=calls["downstream"],
        inference_calls=sum(operations.values()),
        scaled_bias=_after_scaling(inner.mean(), mean.square().sum(), size),
        scaled_error=_after_scaling(inner.mean(), square.mean(), size),
        standard_error=standard_error,
        operations=operations,
        draws=len(draws),
    )


def _cosine(a: Tensor, b: Tensor) -> float:
    product = (a.norm() * b.norm()).item()
    return (a @ b).item() / product if product > 0 else 0.0


def _after_scaling(inner: Tensor, square: Tensor, size: Tensor) -> float:
    """The root of min over c of c^2 * square - 2 c * inner + size^2."""
    gain = inner.square() / square if square > 0 else inner * 0.0
    return (size.square() - gain).clamp_min(0.0).sqrt().item()
