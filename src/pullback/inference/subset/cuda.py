"""Subsets on a GPU, without synchronisation with the host."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from pullback.inference._triton.support import contiguous, launch, next_power_of_2
from pullback.inference.engine.hypergraph.cuda_likelihood import likelihood
from pullback.inference.front import checks
from pullback.inference.front.checks import capturing
from pullback.inference.subset import cuda_kernels, cuda_picks
from pullback.inference.subset.reference import look

LOG_PARTITION, MARGINALS, SAMPLE, ENTROPY, SLOPE, ENTROPY_SLOPE = range(6)  # as the kernel numbers its modes


def argmax(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _pick(scores, lengths, k, validate, project=False)


def project(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _pick(scores, lengths, k, validate, project=True)


def log_partition(scores: Tensor, lengths: Tensor, k: Tensor, most: int, validate: bool) -> Tensor:
    return _run(LOG_PARTITION, scores, lengths, k, most, validate)[1]


def marginals(scores: Tensor, lengths: Tensor, k: Tensor, most: int, validate: bool) -> Tensor:
    return _run(MARGINALS, scores, lengths, k, most, validate)[0]


def log_partition_marginals(scores: Tensor, lengths: Tensor, k: Tensor, most: int, validate: bool) -> tuple[Tensor, Tensor]:
    mu, log_z = _run(MARGINALS, scores, lengths, k, most, validate)
    return log_z, mu


def log_prob(scores: Tensor, lengths: Tensor, k: Tensor, z: Tensor, most: int, validate: bool) -> tuple[Tensor, Tensor]:
    mu, log_z = _run(MARGINALS, scores, lengths, k, most, validate)
    least = _least.__wrapped__ if capturing(scores) else _least  # what a graph makes is there when it is replayed
    return likelihood(contiguous(scores.detach()), z, log_z, mu, (lengths,), least(scores.shape[1], scores.device))


@functools.lru_cache(maxsize=16)
def _least(n: int, device: torch.device) -> Tensor:
    """The smallest length that has an item, in the form of `likelihood`."""
    return torch.arange(1, n + 1, dtype=torch.int32, device=device).repeat(2, 1)


def marginals_vjp(scores: Tensor, lengths: Tensor, k: Tensor, direction: Tensor, most: int, validate: bool) -> Tensor:
    return _run(SLOPE, scores, lengths, k, most, validate, direction=direction)[0]


def entropy(scores: Tensor, lengths: Tensor, k: Tensor, most: int, validate: bool) -> Tensor:
    return _run(ENTROPY, scores, lengths, k, most, validate)[1]


def entropy_gradient(scores: Tensor, lengths: Tensor, k: Tensor, most: int, validate: bool) -> Tensor:
    return _run(ENTROPY_SLOPE, scores, lengths, k, most, validate)[0]


def sample(scores: Tensor, lengths: Tensor, k: Tensor, seeds: Tensor, most: int, validate: bool) -> Tensor:
    return _run(SAMPLE, scores, lengths, k, most, validate, seeds=seeds)[0]


def _pick(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool, *, project: bool) -> Tensor:
    if validate:
        checks.raise_for(look(scores, lengths, k)[1])
    s, (batch, n) = contiguous(scores.detach()), scores.shape
    out, items = torch.empty_like(s), next_power_of_2(max(n, 16))
    if batch > 0:
        tensors = s, contiguous(lengths), contiguous(k), out
        warps = 1 if items <= 256 else 4
        launch(cuda_picks.pick, batch, s.device, *tensors, n, PROJECT=project, N=items, num_warps=warps)
    return out


def _run(
    what: int,
    scores: Tensor,
    lengths: Tensor,
    k: Tensor,
    most: int,
    validate: bool,
    *,
    seeds: Tensor | None = None,
    direction: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    if validate:
        checks.raise_for(look(scores, lengths, k)[1])
    s, (batch, n) = contiguous(scores.detach()), scores.shape
    most = min(most, n)
    out, value = torch.empty_like(s), s.new_empty(batch, dtype=torch.float64)
    if batch == 0:
        return out, value
    width = next_power_of_2(max(most + 1, 16))
    items = next_power_of_2(max(n, 16))
    weights = s.new_empty(batch, n, most + 1, dtype=torch.float64)
    rates = weights if what in (LOG_PARTITION, SAMPLE) else s.new_empty(batch, n + 1, most + 1, dtype=torch.float64)
    scratch = s.new_empty(batch, max(4 * (width + 1), 2 * items), dtype=torch.float64)
    along = s if direction is None else contiguous(direction.detach().to(s.dtype))
    stream = lengths if seeds is None else seeds
    tensors = s, contiguous(lengths), contiguous(k), contiguous(stream), along, weights, rates, scratch, out, value
    warps = 1 if max(items, width) <= 256 else 4  # who share a row wait for each other at each item
    launch(cuda_kernels.run, batch, s.device, *tensors, n, most, MODE=what, N=items, K=width, num_warps=warps)
    return out, value
