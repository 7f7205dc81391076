"""Tag sequences on the CPU: sums and maxima by kernels of their own, the other operations by their hypergraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.chain import kernels, maximum
from pullback.inference.chain.derivations import graph
from pullback.inference.chain.family import CHAIN
from pullback.inference.checks import finish, in_range
from pullback.inference.hypergraph.cpu import flat, operations
from pullback.inference.hypergraph.memory import empty_like
from pullback.inference.threads import spread

*_, marginals_vjp, entropy, entropy_gradient, sample = operations(CHAIN.layout, graph)


def argmax(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    z = empty_like(s).zero_()
    best = np.zeros(len(s))
    fine = _spread(maximum.argmax, 0.5, s, lengths, flat(z), best)
    return z if fine else finish(CHAIN.layout, s, (lengths,), (z,), best, validate)[0]


def log_partition(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.LOG_PARTITION, scores, lengths, validate)[0]


def marginals(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.MARGINALS, scores, lengths, validate)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    log_z, mu, _ = _sums(kernels.MARGINALS, scores, lengths, validate)
    return log_z, mu


def log_prob(scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    log_z, slope, score = _sums(kernels.SLOPE, scores, lengths, validate, z)
    return (score - log_z).to(scores.dtype), slope


def _sums(
    what: int, scores: Tensor, lengths: Tensor, validate: bool, z: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partitions; marginals, or z less them; and the scores of z."""
    s = scores.detach().contiguous()
    out = s if what == kernels.LOG_PARTITION else empty_like(s)
    given = s if z is None else z.detach().to(s.dtype).contiguous()
    log_z, score = np.zeros(len(s)), np.zeros(len(s))
    fine = _spread(kernels.sums, 2.0, s, lengths, what, flat(given), flat(out), log_z, score)
    results: tuple[Tensor, ...] = (torch.from_numpy(log_z), out)
    results = results[:1] if what == kernels.LOG_PARTITION else results
    if not fine:
        results = finish(CHAIN.layout, s, (lengths,), results, log_z, validate)
    return results[0], results[-1], torch.from_numpy(score)


def _spread(kernel: Callable[..., Any], cost: float, scores: Tensor, lengths: Tensor, *rest: Any) -> bool:
    """Run a kernel on the examples; returns whether all went well.

    `cost` is the number of operations per score.
    """
    (safe,), right = in_range(CHAIN.layout, scores.shape, (lengths,))
    codes = np.zeros(len(scores), np.bool_)
    if len(scores) > 0:
        spread(kernel, len(scores), cost * scores.numel(), scores.shape[-1], flat(scores), safe, *rest, codes)
    return right and not codes.any()
