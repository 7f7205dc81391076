"""Exact gradients by enumeration, one example at a time."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pullback.estimators.base import Estimator
from pullback.estimators.diagnostics.replicas import Copies, sizes_of, with_sizes
from pullback.estimators.noise import Gumbel, Noise
from pullback.estimators.perturbed import Perturbed
from pullback.estimators.pulled_back import PulledBack
from pullback.estimators.standardized import Standardized
from pullback.structures import Structure

_MOST = 1_000_000  # numbers in one list of structures
_DRAWS = 100_000  # of noise, for the reference that needs it


def everything(structure: Structure, scores: Tensor, where: tuple[int, ...]) -> Tensor:
    """All structures of one example, `[S, *parts]` of float64, zero in the padding.

    Args:
        structure: the structure.
        scores: `[..., *parts]`.
        where: the example's index in the batch.
    """
    batch, parts = scores.shape[: -structure.event_dims], scores.shape[-structure.event_dims :]
    one = with_sizes(structure, lambda sizes, one: sizes.expand(batch + one)[where])
    layout = getattr(structure, "_layout", None)
    if not inspect.signature(one.enumerate).parameters:  # it knows its parts
        return one.enumerate().double().to(scores.device)
    if layout is None:
        return structure.enumerate(*dict.fromkeys(parts)).double()
    sizes = dict(zip(layout.letters, parts, strict=True))
    for size in sizes_of(one):
        if size.bounds is not None:
            sizes[size.bounds] = int(getattr(one, size.name))
    found = one.enumerate(*sizes.values()).double().to(scores.device)
    missing = [full - have for full, have in zip(parts, found.shape[1:], strict=True)]
    return pad(found, [width for gap in reversed(missing) for width in (0, gap)])


def joint(structure: Structure, scores: Tensor, example: int) -> tuple[Tensor, Tensor]:
    """All combinations of an example's structures, `[S, ..., *parts]`, and their probabilities, `[S]`.

    Args:
        structure: the structure.
        scores: `[B, ..., *parts]`.
        example: which of the B.
    """
    inside = scores.shape[1 : scores.dim() - structure.event_dims]
    lists = [everything(structure, scores, (example, *index)) for index in itertools.product(*map(range, inside))]
    count = torch.tensor([len(z) for z in lists]).double().prod() * scores[example].numel()
    if count > _MOST:
        raise ValueError(
            f"diagnose lists all structures: {count:.1e} numbers for scores of shape {list(scores[example].shape)}; "
            f"use a smaller example"
        )
    indices = [torch.arange(len(z), device=scores.device) for z in lists]
    chosen = torch.cartesian_prod(*indices).reshape(-1, len(lists))
    z = torch.stack([z[chosen[:, i]] for i, z in enumerate(lists)], 1).reshape(len(chosen), *scores.shape[1:])
    batch = _among(structure.argmax(scores), example, z)
    totals = structure.score(scores.expand(batch.shape), batch)[:, example].reshape(len(z), -1).sum(1)
    return z, totals.softmax(0)


def _among(base: Tensor, example: int, z: Tensor) -> Tensor:
    """Batches with one example at each z, `[S, B, ..., *parts]`, the other examples at `base`."""
    batch = base.expand(len(z), *base.shape).clone()
    batch[:, example] = z
    return batch


def losses_at(copies: Copies, base: Tensor, example: int, z: Tensor) -> Tensor:
    """The losses of one example at many z, `[S]`, the other examples at `base`, `[B, ..., *parts]`."""
    return copies(_among(base, example, z).flatten(0, 1)).unflatten(0, (len(z), -1))[:, example]


def expected(structure: Structure, scores: Tensor, copies: Copies) -> Tensor:
    """The gradient of E_p[L(z)]: E[(L - E[L]) z]."""
    base, found = structure.argmax(scores), torch.zeros_like(scores)
    for example in range(len(scores)):
        z, p = joint(structure, scores, example)
        with torch.no_grad():
            losses = losses_at(copies, base, example, z)
        found[example] = torch.tensordot(p * (losses - p @ losses), z, 1)
    return found


def relaxed(structure: Structure, scores: Tensor, copies: Copies) -> Tensor:
    """The gradient of L(E_p[z]): Cov(z) gamma, gamma at the mean."""
    lists = [joint(structure, scores, example) for example in range(len(scores))]
    means = torch.stack([torch.tensordot(p, z, 1) for z, p in lists]).requires_grad_()
    (gamma,) = torch.autograd.grad(copies(means).sum(), means)
    found, dims = torch.zeros_like(scores), tuple(range(-structure.event_dims, 0))
    for example, (z, p) in enumerate(lists):
        d = z - means[example].detach()
        inner = (d * gamma[example]).sum(dims, keepdim=True)
        found[example] = torch.tensordot(p, d * inner, 1)
    return found


def perturbed(structure: Structure, scores: Tensor, copies: Copies, estimator: Estimator) -> tuple[Tensor, Tensor]:
    """The gradient of E_g[L(argmax(s + T g))], and its standard error, by Monte Carlo with common random numbers.

    With nu' of the noise by Stein's identity, E[nu'(g) (L - E[L])] / T, the same draws for all parts; else by central
    differences of width T / 5 in each part, with the same draws on both sides.
    """
    noise, scale = _noise_of(estimator)
    base, allowed = structure.argmax(scores), structure.allowed(scores)
    found, error = torch.zeros_like(scores), torch.zeros_like(scores)
    for example in range(len(scores)):
        batch = scores.shape[: -structure.event_dims]
        one = with_sizes(structure, lambda sizes, rest: sizes.expand(batch + rest)[example])  # noqa: B023
        s = scores[example].expand(_DRAWS // (1 + scores[example].numel()) + 1000, *scores.shape[1:])

        def losses(at: Tensor, one: Structure = one, example: int = example) -> Tensor:
            with torch.no_grad():
                return losses_at(copies, base, example, one.argmax(at))

        g = noise(s)
        if callable(getattr(noise, "score", None)):
            here = losses(s + scale * g)
            spread = (here - here.mean()).reshape(-1, *[1] * (s.dim() - 1))
            terms = noise.score(g) * spread / scale  # type: ignore[attr-defined]
        else:
            terms, h = torch.zeros_like(s), scale / 5
            for part in torch.nonzero(allowed[example]).tolist():
                step = torch.zeros_like(scores[example])
                step[tuple(part)] = h
                terms[(slice(None), *part)] = (losses(s + step + scale * g) - losses(s - step + scale * g)) / (2 * h)
        found[example], error[example] = terms.mean(0), terms.std(0) / len(terms) ** 0.5
    return torch.where(allowed, found, 0.0), torch.where(allowed, error, 0.0)


def _noise_of(estimator: Estimator) -> tuple[Noise, float]:
    """The noise of the perturbed argmax that the decoder sees, and its scale T; an estimator without noise has `Gumbel()`."""
    source: Any = estimator
    while isinstance(source, Standardized):
        source = source.estimator
    if isinstance(source, PulledBack):
        source = source.start
    if not hasattr(source, "noise"):
        return Gumbel(), 1.0
    # The temperature of (s + g) / T divides the noise and the scores alike, which leaves the argmax as it is.
    divides = isinstance(source, Perturbed)
    scale = 1.0 if divides else getattr(source, "sigma", getattr(source, "temperature", 1.0))
    if scale == 0:
        raise ValueError(f"{estimator!r} has no noise: E_g[L(argmax(s + T g))] has no gradient at T = 0")
    return source.noise, float(scale)
