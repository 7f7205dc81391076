"""Tag sequences on the CPU: sums and maxima by kernels of their own, the other operations by their hypergraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pullback.inference.chain import kernels
from pullback.inference.chain.derivations import graph
from pullback.inference.chain.family import CHAIN
from pullback.inference.checks import finish
from pullback.inference.hypergraph.cpu import flat, operations
from pullback.inference.threads import spread

*_, marginals_vjp, entropy, entropy_gradient, sample = operations(CHAIN.layout, graph)


def argmax(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    z = torch.zeros_like(s)
    best, codes = torch.zeros(len(s), dtype=torch.float64), torch.zeros(len(s), dtype=torch.uint8)
    _spread(kernels.argmax, 0.5, s, lengths, flat(z), best.numpy(), codes.numpy())
    return finish(CHAIN.layout, s, (lengths,), (z,), best, codes, validate)[0]


def log_partition(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.LOG_PARTITION, scores, lengths, validate)[0]


def marginals(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.MARGINALS, scores, lengths, validate)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    log_z, mu, _ = _sums(kernels.MARGINALS, scores, lengths, validate)
    return log_z, mu


def log_prob(scores: Tensor, lengths: Tensor, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    log_z, slope, score = _sums(kernels.SLOPE, scores, lengths, validate, z)
    return score - log_z, slope


def _sums(
    what: int, scores: Tensor, lengths: Tensor, validate: bool, z: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partitions; marginals, or z less them; and the scores of z."""
    s = scores.detach().contiguous()
    out = s if what == kernels.LOG_PARTITION else torch.empty_like(s)
    given = s if z is None else z.detach().to(s.dtype).contiguous()
    log_z, score = torch.zeros(2, len(s), dtype=torch.float64)
    codes = torch.zeros(len(s), dtype=torch.uint8)
    arrays = flat(given), flat(out), log_z.numpy(), score.numpy(), codes.numpy()
    _spread(kernels.sums, 2.0, s, lengths, what, *arrays)
    results = (log_z,) if what == kernels.LOG_PARTITION else (log_z, out)
    results = finish(CHAIN.layout, s, (lengths,), results, log_z, codes, validate)
    return results[0], results[-1], score


def _spread(kernel: Callable[..., Any], cost: float, scores: Tensor, lengths: Tensor, *rest: Any) -> None:
    """Run a kernel on the examples; `cost` is the number of operations per score."""
    (safe,) = CHAIN.layout.in_range(scores, (lengths,))
    if len(scores) > 0:
        spread(kernel, len(scores), cost * scores.numel(), scores.shape[-1], flat(scores), safe.contiguous().numpy(), *rest)
