"""Binary trees on the CPU: sums of weights where they stay in range; otherwise, and for the rest, their hypergraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference.checks import OK, BadValuesError, finish
from pullback.inference.cky import kernels, maximum
from pullback.inference.cky.derivations import graph
from pullback.inference.cky.family import BINARY_TREE
from pullback.inference.hypergraph.cpu import operations
from pullback.inference.threads import spread

(
    _, _log_partition, _, _log_partition_marginals, _product, entropy, entropy_gradient, sample,
) = operations(BINARY_TREE.layout, graph)  # fmt: skip


def argmax(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    z, best, codes = torch.zeros_like(s), np.zeros(len(s)), np.zeros(len(s), np.bool_)
    _spread(maximum.argmax, 0.5, s, lengths, z.numpy(), best, codes)
    return z if not codes.any() else finish(BINARY_TREE.layout, s, (lengths,), (z,), best, validate)[0]


def log_partition(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return torch.from_numpy(_sums(kernels.LOG_PARTITION, scores, lengths, validate)[0])


def marginals(scores: Tensor, lengths: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.MARGINALS, scores, lengths, validate)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    log_z, mu = _sums(kernels.MARGINALS, scores, lengths, validate)
    return torch.from_numpy(log_z), mu


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.PRODUCT, scores, lengths, validate, direction)[1]


def _sums(
    what: int, scores: Tensor, lengths: Tensor, validate: bool, direction: Tensor | None = None
) -> tuple[np.ndarray, Tensor]:
    """Log-partitions, and marginals or the product of their Jacobian with a direction."""
    s = scores.detach().contiguous()
    count = s.shape[0]
    out = s if what == kernels.LOG_PARTITION else torch.empty_like(s)
    along = s if direction is None else direction.detach().to(s.dtype).contiguous()
    log_z, sound = np.zeros(count), np.zeros(count, np.bool_)
    _spread(kernels.sums, 2.0, s, lengths, what, along.numpy(), out.numpy(), log_z, sound)
    if not sound.all():
        tensors = (s, lengths) if direction is None else (s, lengths, along)
        results = (torch.from_numpy(log_z), out)[: 1 if what == kernels.LOG_PARTITION else 2]
        _again(what, torch.from_numpy(np.flatnonzero(~sound)), tensors, results, validate)
    return log_z, out


def _spread(kernel: Callable[..., Any], cost: float, scores: Tensor, lengths: Tensor, *rest: Any) -> None:
    """Run a kernel on groups of examples of falling length. `cost` is the number of operations per split."""
    if scores.numel() > 0:
        count, side = scores.shape[:2]
        groups = -(-count * scores.itemsize // 64)
        spread(kernel, groups, cost * count * side**3, side, scores.numpy(), lengths.contiguous().numpy(), *rest)


def _again(what: int, rows: Tensor, tensors: tuple[Tensor, ...], results: tuple[Tensor, ...], validate: bool) -> None:
    """Write over the results of some examples, which are out of range."""
    try:
        found = _careful(what, *[x[rows] for x in tensors], validate=validate)
    except BadValuesError as error:
        status = torch.full(results[0].shape, OK, dtype=error.status.dtype)
        status[rows] = error.status
        raise BadValuesError(status) from None
    for result, values in zip(results, found, strict=True):
        result[rows] = values.to(result.dtype)


def _careful(what: int, scores: Tensor, *rest: Tensor, validate: bool) -> tuple[Tensor, ...]:
    """The results of `_sums` for examples that are out of range: float32 as float64, float64 in logarithms."""
    if scores.dtype == torch.float32:
        lengths, *direction = rest
        log_z, out = _sums(what, scores.double(), lengths, validate, *direction)
        return (torch.from_numpy(log_z), out)[: 1 if what == kernels.LOG_PARTITION else 2]
    if what == kernels.LOG_PARTITION:
        return (_log_partition(scores, *rest, validate=validate),)
    if what == kernels.MARGINALS:
        return _log_partition_marginals(scores, *rest, validate=validate)
    return torch.zeros(len(scores), dtype=torch.float64), _product(scores, *rest, validate=validate)
