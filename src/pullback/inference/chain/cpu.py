"""Tag sequences on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.threads import spread
from pullback.inference.chain import kernels, maximum, slopes
from pullback.inference.chain.family import CHAIN
from pullback.inference.front.checks import finish

_NO_SEEDS = np.zeros(0, np.int64)


def argmax(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    z = empty_like(s)
    best = np.zeros(len(s))
    fine = _spread(maximum.argmax, 0.5, s, lengths, z.numpy(), best)
    return z if fine else finish(CHAIN.layout, s, (lengths,), (z,), best, validate)[0]


def log_partition(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.LOG_PARTITION, scores, lengths, validate)[0]


def marginals(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.MARGINALS, scores, lengths, validate)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    return _sums(kernels.MARGINALS, scores, lengths, validate)


def log_prob(scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    z = z.detach() if z.dtype == scores.dtype else z.detach().to(scores.dtype)
    return _sums(kernels.SLOPE, scores, lengths, validate, z.contiguous())


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.SAMPLE, scores, lengths, validate, seeds=seeds.contiguous().numpy())[1]


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, validate: bool) -> Tensor:
    return _slopes(slopes.SLOPE, scores, lengths, validate, direction.detach().to(scores.dtype).contiguous())[1]


def entropy(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _slopes(slopes.ENTROPY, scores, lengths, validate)[0]


def entropy_gradient(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _slopes(slopes.ENTROPY_SLOPE, scores, lengths, validate)[1]


def _slopes(
    what: int, scores: Tensor, lengths: Tensor, validate: bool, direction: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Rates of all sequences, and the derivatives of marginals."""
    s = scores.detach().contiguous()
    out, value = empty_like(s), np.zeros(len(s))
    fine = _spread(slopes.slopes, 10.0, s, lengths, what, (s if direction is None else direction).numpy(), out.numpy(), value)
    results: tuple[Tensor, ...] = torch.from_numpy(value), out
    if not fine:
        results = finish(CHAIN.layout, s, (lengths,), results, value, validate)
    return results[0], results[1]


def _sums(
    what: int, scores: Tensor, lengths: Tensor, validate: bool, z: Tensor | None = None, seeds: np.ndarray = _NO_SEEDS
) -> tuple[Tensor, Tensor]:
    """Log-partitions and marginals or samples, or the log-probabilities of z and z less the marginals."""
    s = scores.detach().contiguous()
    out = s if what == kernels.LOG_PARTITION else empty_like(s)
    log_z, given = np.zeros(s.shape[0]), (s if z is None else z).numpy()
    value = np.zeros(len(log_z))  # in float64, where large scores do not cancel to noise
    fine = _spread(kernels.sums, 2.0, s, lengths, what, given, seeds, out.numpy(), log_z, value)
    first = torch.from_numpy(log_z) if z is None else torch.from_numpy(value).to(s.dtype)
    if fine:
        return first, out
    found = (first,) if what == kernels.LOG_PARTITION else (first, out)
    results = finish(CHAIN.layout, s, (lengths,), found, log_z, validate)
    return results[0], results[-1]


def _spread(kernel: Callable[..., Any], cost: float, scores: Tensor, lengths: Tensor, *rest: Any) -> bool:
    """Run a kernel on the examples; returns whether all went well.

    `cost` is the number of operations per score.
    """
    count, tags = scores.shape[0], scores.shape[-1]
    codes = np.zeros(count, np.bool_)
    if count > 0:
        spread(kernel, count, cost * scores.numel(), tags, scores.numpy(), lengths.contiguous().numpy(), *rest, codes)
    return np.count_nonzero(codes) == 0  # sooner than `any`
