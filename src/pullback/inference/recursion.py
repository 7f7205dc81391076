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

from pullback.inference import checks, random
from pullback.inference.layout import Layout
from pullback.inference.torch_seam.differentiate import gradient, with_autograd


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
            slope = gradient(total, leaf, create_graph=True)
            return gradient((slope * v).sum(), leaf), total.detach()

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
                nodes.append((combined, _LocalEntropy.apply(terms, dim)))  # type: ignore[no-untyped-call]
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
        """The result, NaN for the examples that have none; or an error that names the first of those."""
        infeasible = (self.status == checks.OK) & (total == -torch.inf)
        status = torch.where(infeasible, checks.INFEASIBLE, self.status)
        if validate:
            checks.raise_for(status)
        bad = (status != checks.OK).reshape(-1, *[1] * (result.dim() - 1))
        return torch.where(bad, torch.nan, result)


def largest(terms: Tensor, dim: int) -> Tensor:
    """The maximum; its gradient goes to the first of the best terms."""
    return _Largest.apply(terms, dim)  # type: ignore[no-untyped-call, no-any-return]


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """Log sum exp, -inf where all terms are; it can be differentiated twice there, too."""
    return _LogSum.apply(terms, dim)  # type: ignore[no-untyped-call, no-any-return]


class _Draw:
    """log sum exp; its gradient goes to one term, drawn from their softmax."""

    def __init__(self, seeds: Tensor) -> None:
        self._seeds, self._drawn = seeds, 0

    def __call__(self, terms: Tensor, dim: int) -> Tensor:
        combined = log_sum(terms.detach(), dim)
        uniform = random.uniforms(self._seeds, self._drawn, combined[:1].numel()).reshape(combined.shape)
        self._drawn += combined[:1].numel()
        return _Drawn.apply(terms, combined, uniform, dim)  # type: ignore[no-untyped-call, no-any-return]


def _one_hot(index: Tensor, terms: Tensor, dim: int, values: Tensor) -> Tensor:
    return torch.zeros_like(terms).scatter(dim, index.unsqueeze(dim), values.unsqueeze(dim))


class _Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, dim: int) -> Tensor:
        if terms.shape[dim] == 0:
            ctx.empty = True
            ctx.save_for_backward(terms)
            return terms.sum(dim) - torch.inf
        best = terms.amax(dim)
        places = torch.arange(terms.shape[dim], device=terms.device).reshape(-1, *[1] * (terms.dim() - 1 - dim % terms.dim()))
        first = torch.where(terms == best.unsqueeze(dim), places, terms.shape[dim] - 1).amin(dim)
        ctx.empty, ctx.dim = False, dim
        ctx.save_for_backward(terms, first)
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if ctx.empty:
            return torch.zeros_like(ctx.saved_tensors[0]), None
        terms, first = ctx.saved_tensors
        return _one_hot(first, terms, ctx.dim, grad), None


class _LogSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(terms)
        ctx.dim = dim
        return terms.logsumexp(dim)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (terms,) = ctx.saved_tensors
        return grad.unsqueeze(ctx.dim) * _Softmax.apply(terms, ctx.dim), None  # type: ignore[no-untyped-call]


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, dim: int) -> Tensor:
        p = _softmax(terms, dim)
        ctx.save_for_backward(p)
        ctx.dim = dim
        return p

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        return p * (grad - (p * grad).sum(ctx.dim, keepdim=True)), None


class _Drawn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, combined: Tensor, uniform: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(terms, uniform)
        ctx.dim = dim
        return combined.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        terms, uniform = ctx.saved_tensors
        if terms.shape[ctx.dim] == 0:
            return torch.zeros_like(terms), None, None, None
        upto = _softmax(terms, ctx.dim).cumsum(ctx.dim)
        most = upto.narrow(ctx.dim, terms.shape[ctx.dim] - 1, 1)
        drawn = (upto <= uniform.unsqueeze(ctx.dim) * most).sum(ctx.dim).clamp_max(terms.shape[ctx.dim] - 1)
        return _one_hot(drawn, terms, ctx.dim, grad), None, None, None


def _softmax(terms: Tensor, dim: int) -> Tensor:
    """Zeros where all terms are -inf."""
    p = terms.softmax(dim)
    return torch.where(p.isnan(), 0.0, p)


class _LocalEntropy(torch.autograd.Function):
    """The entropy of the softmax of the terms."""

    @staticmethod
    def forward(ctx: Any, terms: Tensor, dim: int) -> Tensor:
        p = _softmax(terms, dim)
        log_p = torch.where(p > 0, terms.log_softmax(dim), 0.0)
        nats = -(p * log_p).sum(dim)
        ctx.save_for_backward(p, log_p, nats)
        ctx.dim = dim
        return nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        p, log_p, nats = ctx.saved_tensors
        return -grad.unsqueeze(ctx.dim) * p * (log_p + nats.unsqueeze(ctx.dim)), None
