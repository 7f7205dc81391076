"""Every operation of a dynamic program from its recursion, written once, in plain PyTorch on any device.

A recursion adds scores and combines alternatives. How it combines them decides what it computes:

    the maximum, with a gradient that goes to the first best term     the best score; its gradient is the argmax
    log sum exp                                                       log Z; its gradient are the marginals
    log sum exp, with a gradient that goes to one term at random      log Z; its gradient is an exact sample

For the entropy, a combined value y = LSE(x) is <p, x> + h(p), p its softmax and h its entropy. Put together, and scores
being added only, log Z = <s, mu> + the sum over all combined values of (d log Z / d y) h, where the first term goes: no large
numbers cancel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from pullback.inference._torch.differentiate import gradient, with_autograd
from pullback.inference.front import checks, random
from pullback.inference.front.layout import Layout


class Combine(Protocol):
    """Combines alternatives: from terms with the batch as first dimension to their combination over `dim`."""

    def __call__(self, terms: Tensor, dim: int) -> Tensor: ...


Value = Callable[..., Tensor]
"""`value(scores, *sizes, combine=combine, **options)` -> `[B]`, for scores in float64, -inf on all that cannot be used."""


def operations(value: Value, layout: Layout) -> tuple[Callable[..., Tensor], ...]:
    """The functions `argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample` of a family."""
    named = inspect.signature(value).parameters

    def prepare(scores: Tensor, sizes: tuple[Tensor, ...], options: dict[str, Any]) -> _Problem:
        return _Problem(value, layout, scores, sizes, {k: v for k, v in options.items() if k in named})

    def argmax(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return prepare(scores, sizes, options).gradient(largest, validate)

    def log_partition(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        problem = prepare(scores, sizes, options)
        log_z = problem.value(problem.scores, log_sum)
        return problem.finish(log_z, log_z, validate)

    def marginals(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return prepare(scores, sizes, options).gradient(log_sum, validate)

    def marginals_vjp(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Tensor:
        *sizes, direction = rest
        return prepare(scores, tuple(sizes), options).hessian_product(direction, validate)

    def entropy(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return prepare(scores, sizes, options).entropy(validate)

    def entropy_gradient(scores: Tensor, *sizes: Tensor, validate: bool, **options: Any) -> Tensor:
        return prepare(scores, sizes, options).entropy_gradient(validate)

    def sample(scores: Tensor, *rest: Tensor, validate: bool, **options: Any) -> Tensor:
        *sizes, seeds = rest
        return prepare(scores, tuple(sizes), options).gradient(_Draw(seeds), validate)

    return argmax, log_partition, marginals, marginals_vjp, entropy, entropy_gradient, sample


class _Problem:
    """A batch of scores as the recursion takes it, with a status for each example."""

    def __init__(
        self, value: Value, layout: Layout, scores: Tensor, sizes: tuple[Tensor, ...], options: dict[str, Any]
    ) -> None:
        self._value, self._options, self._dtype = value, options, scores.dtype
        scores = scores.detach()
        self.status, self.sizes = layout.status(scores, sizes), layout.in_range(scores, sizes)
        self.mask = layout.mask(scores, self.sizes)
        usable = self.mask & (self.status == checks.OK).reshape(-1, *[1] * layout.dims)
        self.scores = torch.where(usable, scores.double(), -torch.inf)

    def value(self, scores: Tensor, combine: Combine) -> Tensor:
        return self._value(scores, *self.sizes, combine=combine, **self._options)

    def gradient(self, combine: Combine, validate: bool) -> Tensor:
        def run(leaf: Tensor) -> tuple[Tensor, Tensor]:
            total = self.value(leaf, combine)
            return gradient(total, leaf), total.detach()

        found, total = with_autograd(run, self.scores)
        return self.finish(found.to(self._dtype), total, validate)

    def hessian_product(self, direction: Tensor, validate: bool) -> Tensor:
        v = torch.where(self.mask, direction.detach().double(), 0.0)

        def run(leaf: Tensor) -> tuple[Tensor, Tensor]:
            total = self.value(leaf, log_sum)
            mu = gradient(total, leaf, create_graph=True)
            return gradient((mu * v).sum(), leaf), total.detach()

        found, total = with_autograd(run, self.scores)
        return self.finish(found.to(self._dtype), total, validate)

    def entropy(self, validate: bool) -> Tensor:
        def run(leaf: Tensor) -> tuple[Tensor, Tensor]:
            nats, total = self._entropy(leaf, create_graph=False)
            return nats.detach().clamp_min(0.0), total.detach()

        nats, total = with_autograd(run, self.scores)
        return self.finish(nats, total, validate)

    def entropy_gradient(self, validate: bool) -> Tensor:
        def run(leaf: Tensor) -> tuple[Tensor, Tensor]:
            nats, total = self._entropy(leaf, create_graph=True)
            return gradient(nats, leaf).to(self._dtype), total.detach()

        found, total = with_autograd(run, self.scores)
        return self.finish(found, total, validate)

    def _entropy(self, leaf: Tensor, create_graph: bool) -> tuple[Tensor, Tensor]:
        """The entropy and log Z."""
        nodes: list[tuple[Tensor, Tensor]] = []

        def recorded(terms: Tensor, dim: int) -> Tensor:
            combined = log_sum(terms, dim)
            if combined.requires_grad:
                nodes.append((combined, _local_entropy(terms, combined, dim)))
            return combined

        total = self.value(leaf, recorded)
        nats = torch.zeros_like(total)
        if nodes:
            values = [node for node, _ in nodes]
            chances = torch.autograd.grad(total.sum(), values, create_graph=create_graph, materialize_grads=True)
            for chance, (_, local) in zip(chances, nodes, strict=True):
                nats = nats + (chance * local).unsqueeze(-1).flatten(1).sum(1)
        return nats, total

    def finish(self, result: Tensor, total: Tensor, validate: bool) -> Tensor:
        """The result, settled: a total of -inf says that an example has no structure."""
        infeasible = (self.status == checks.OK) & (total == -torch.inf)
        return checks.settled(result, torch.where(infeasible, checks.INFEASIBLE, self.status), validate)


def largest(terms: Tensor, dim: int) -> Tensor:
    """The maximum, -inf of nothing; its gradient goes to the first of the largest terms."""
    return terms.max(dim).values if terms.shape[dim] else terms.sum(dim) - torch.inf


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """Log sum exp, -inf of nothing; it can be differentiated twice where all terms are -inf, too."""
    if terms.shape[dim] == 0:
        return terms.sum(dim) - torch.inf
    top = terms.detach().amax(dim)
    top = torch.where(top == -torch.inf, 0.0, top)
    total = (terms - top.unsqueeze(dim)).exp().sum(dim)
    return torch.where(total > 0, torch.where(total > 0, total, 1.0).log() + top, -torch.inf)


class _Draw:
    """log sum exp; its gradient goes to one term, drawn from their softmax."""

    def __init__(self, seeds: Tensor) -> None:
        self._seeds, self._drawn = seeds, 0

    def __call__(self, terms: Tensor, dim: int) -> Tensor:
        combined = log_sum(terms.detach(), dim)
        uniform = random.uniforms(self._seeds, self._drawn, combined[:1].numel()).reshape(combined.shape).unsqueeze(dim)
        self._drawn += combined[:1].numel()
        if terms.shape[dim] == 0:
            return combined
        upto = _shares(terms.detach(), combined, dim).exp().cumsum(dim)
        below = (upto <= uniform * upto.narrow(dim, terms.shape[dim] - 1, 1)).sum(dim, keepdim=True)
        drawn = torch.where(terms > -torch.inf, terms, 0.0).gather(dim, below.clamp_max(terms.shape[dim] - 1)).squeeze(dim)
        return combined + (drawn - drawn.detach())


def _shares(terms: Tensor, combined: Tensor, dim: int) -> Tensor:
    """The log of each term's share of their sum; -inf where all terms are."""
    return terms - torch.where(combined == -torch.inf, 0.0, combined).unsqueeze(dim)


def _local_entropy(terms: Tensor, combined: Tensor, dim: int) -> Tensor:
    """The entropy of the softmax of the terms."""
    log_p = _shares(terms, combined, dim)
    log_p = torch.where(log_p > -torch.inf, log_p, 0.0)
    return -torch.where(terms > -torch.inf, log_p.exp() * log_p, 0.0).sum(dim)
