"""Monotone alignments on the CPU: sums and maxima by kernels of their own, the other operations by their hypergraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.alignment import kernels
from pullback.inference.alignment.derivations import graph
from pullback.inference.alignment.family import ALIGNMENT
from pullback.inference.checks import finish, in_range
from pullback.inference.hypergraph.cpu import operations
from pullback.inference.threads import spread

*_, marginals_vjp, entropy, entropy_gradient, sample = operations(ALIGNMENT.layout, graph)


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    z = torch.zeros_like(scores, memory_format=torch.contiguous_format)
    return _run(kernels.argmax, scores, (lengths, other_lengths), moves, validate, z, z.numpy())[1]


def log_partition(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _run(kernels.sums, scores, (lengths, other_lengths), moves, validate, None, False)[0]


def marginals(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return log_partition_marginals(scores, lengths, other_lengths, moves, validate)[1]


def log_partition_marginals(
    scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool
) -> tuple[Tensor, Tensor]:
    mu = torch.zeros_like(scores, memory_format=torch.contiguous_format)
    return _run(kernels.sums, scores, (lengths, other_lengths), moves, validate, mu, True)


def _run(
    kernel: Callable[..., Any],
    scores: Tensor,
    sizes: tuple[Tensor, Tensor],
    moves: str,
    validate: bool,
    out: Tensor | None,
    *which: Any,
) -> tuple[Tensor, Tensor]:
    """The values that a kernel finds for the examples, and `out`, which it writes over zeros."""
    s = scores.detach().contiguous()
    safe, right = in_range(ALIGNMENT.layout, s.shape, sizes)
    value, codes = np.zeros(len(s)), np.zeros(len(s), np.bool_)
    if len(s) > 0:
        written = (s if out is None else out).numpy()
        rest = (*which, written) if kernel is kernels.sums else which
        spread(kernel, len(s), 20.0 * s.numel(), s.numpy(), *safe, moves == "any", *rest, value, codes)
    results: tuple[Tensor, ...] = (torch.from_numpy(value),) if out is None else (torch.from_numpy(value), out)
    if not right or codes.any():
        results = finish(ALIGNMENT.layout, s, sizes, results, value, validate)
    return results[0], results[-1]
