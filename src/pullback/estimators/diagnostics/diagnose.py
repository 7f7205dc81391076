"""Compare an estimator with the exact gradient, by enumeration."""

from __future__ import annotations

import copy
from typing import Literal, get_args

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator
from pullback.estimators.diagnostics.exact import expected, perturbed, relaxed
from pullback.estimators.diagnostics.record import Diagnosis, measured
from pullback.estimators.diagnostics.replicas import Copies, counted, repeated
from pullback.structures import Structure

Reference = Literal["expected", "relaxed", "perturbed"]
_TOGETHER = 2_000_000  # numbers of scores that are worked on at once


def diagnose(
    estimator: Estimator,
    structure: Structure,
    scores: Tensor,
    downstream: Downstream,
    draws: int = 1000,
    reference: Reference = "expected",
) -> Diagnosis:
    """Bias, variance and direction of an estimator's gradient, against the exact gradient by enumeration.

    Everything is computed in float64, with all draws in one batch. The estimator is not changed: its state is copied.

    Args:
        estimator: the estimator to measure.
        structure: one with `enumerate`, small enough to list.
        scores: `[B, ..., *parts]`, or `[*parts]` for a single structure.
        downstream: from z, of the shape of the scores, to one loss per example, `[B]`. It is mapped over the draws
            with `torch.vmap` if that works, and called once per draw otherwise.
        draws: the number of draws of the estimator's noise; an estimator without noise uses one.
        reference: the exact gradient: of the expected loss E_p[L(z)] (`expected`), of the loss of the mean,
            L(Marg(s)) (`relaxed`), or of E_g[L(argmax(s + T g))] with the noise and the scale T of the argmax that the
            decoder sees (`perturbed`; Gumbel noise with T = 1 if the estimator has none), which is itself an
            estimate, with a standard error. All are of the scores s as given, for `Standardized`, too.

    >>> import pullback as pb
    >>> cost = torch.tensor([1.0, 0.0, 3.0])
    >>> found = diagnose(pb.Marginals(), pb.Categorical(), torch.zeros(1, 3), lambda z: z @ cost)
    >>> round(found.bias, 6), round(found.cosine, 6), found.decoder_calls
    (0.0, 1.0, 1)
    """
    if reference not in get_args(Reference):
        raise ValueError(f"reference is {reference!r}; it must be one of {', '.join(get_args(Reference))}")
    if draws < 1:
        raise ValueError(f"draws is {draws}; it must be at least 1")
    batched = scores.dim() > structure.event_dims
    s = scores.detach().double() if batched else scores.detach().double()[None]
    copies = Copies(downstream, batched, len(s), scores.dtype)
    error = None
    if reference == "perturbed":
        exact, error = perturbed(structure, s, copies, estimator)
    else:
        exact = (expected if reference == "expected" else relaxed)(structure, s, copies)
    calls = _calls(estimator, structure, s, copies)
    found = _drawn(estimator, structure, s, copies, draws)
    allowed = structure.allowed(s)
    if not batched:
        found, exact, allowed = found[:, 0], exact[0], allowed[0]
        error = error[0] if error is not None else None
    return measured(found, exact, allowed, calls, error)


def _drawn(estimator: Estimator, structure: Structure, s: Tensor, copies: Copies, draws: int) -> Tensor:
    """Gradients, `[draws, B, ...]`; `[1, B, ...]` from an estimator that draws nothing."""
    before = _random_state()
    first = _gradients(estimator, structure, s, copies, 1)
    drew = any(not torch.equal(a, b) for a, b in zip(before, _random_state(), strict=True))
    if not drew and torch.equal(first, _gradients(estimator, structure, s, copies, 1)):
        return first
    at_once = max(1, min(draws, _TOGETHER // max(1, s.numel())))
    sizes = [at_once] * (draws // at_once) + [draws % at_once] * bool(draws % at_once)
    return torch.cat([_gradients(estimator, structure, s, copies, size) for size in sizes])


def _gradients(estimator: Estimator, structure: Structure, s: Tensor, copies: Copies, draws: int) -> Tensor:
    many = repeated(structure, s.shape[: s.dim() - structure.event_dims], draws)
    leaf = s.repeat(draws, *[1] * (s.dim() - 1)).requires_grad_()
    with torch.enable_grad():
        copy.deepcopy(estimator).objective(many, leaf, copies).sum().backward()
    assert leaf.grad is not None
    return leaf.grad.unflatten(0, (draws, len(s)))


def _calls(estimator: Estimator, structure: Structure, s: Tensor, copies: Copies) -> dict[str, int]:
    """The numbers of calls of one training step, by operation; `downstream` is the decoder."""
    counting, counts = counted(structure)
    state, copies.calls = torch.get_rng_state(), 0
    _gradients(estimator, counting, s, copies, 1)
    torch.set_rng_state(state)
    return {"downstream": copies.calls} | dict(counts)


def _random_state() -> list[Tensor]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *cuda]
