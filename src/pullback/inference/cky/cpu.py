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
from pullback.inference.hypergraph.memory import MOST, empty
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
    log_z, mu, _ = _sums(kernels.MARGINALS, scores, lengths, validate)
    return torch.from_numpy(log_z), mu


def marginals_and_product(
    scores: Tensor, lengths: Tensor, validate: bool
) -> tuple[Tensor, Callable[[Tensor], Tensor] | None]:
    """Marginals, and the product of their Jacobian with a direction by the charts of this pass, if those are worth keeping."""
    (count, side, _), dtype, lanes = scores.shape, scores.dtype, 64 // scores.itemsize
    numbers = -(-count // lanes) * lanes * 2 * side * (side + 1)
    if numbers * scores.itemsize > MOST:
        return marginals(scores, lengths, validate), None
    kept = empty((numbers,), dtype).numpy()
    _, mu, sound = _sums(kernels.MARGINALS, scores, lengths, validate, kept=kept)

    def product(direction: Tensor) -> Tensor:  # which must not refer to mu, whose graph refers to it
        along = direction.detach().to(dtype).contiguous()
        out = torch.empty_like(along)
        rest = kernels.PRODUCT, along.numpy(), out.numpy(), kept, np.empty(0), np.empty(0, np.bool_)
        _spread(kernels.sums, 1.0, out, lengths, *rest)
        return out

    return mu, product if sound else None


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, validate: bool) -> Tensor:
    return _sums(kernels.PRODUCT, scores, lengths, validate, direction)[1]


def _sums(
    what: int,
    scores: Tensor,
    lengths: Tensor,
    validate: bool,
    direction: Tensor | None = None,
    kept: np.ndarray | None = None,
) -> tuple[np.ndarray, Tensor, bool]:
    """Log-partitions, marginals or the product of their Jacobian with a direction, and whether weights stayed in range."""
    s = scores.detach().contiguous()
    count = s.shape[0]
    out = s if what == kernels.LOG_PARTITION else torch.empty_like(s)
    along = s if direction is None else direction.detach().to(s.dtype).contiguous()
    log_z, sound = np.zeros(count), np.zeros(count, np.bool_)
    kept = log_z[:0].astype(out.numpy().dtype) if kept is None else kept
    _spread(kernels.sums, 2.0, s, lengths, what, along.numpy(), out.numpy(), kept, log_z, sound)
    fine = bool(sound.all())
    if not fine:
        tensors = (s, lengths) if direction is None else (s, lengths, along)
        results = (torch.from_numpy(log_z), out)[: 1 if what == kernels.LOG_PARTITION else 2]
        _again(what, torch.from_numpy(np.flatnonzero(~sound)), tensors, results, validate)
    return log_z, out, fine


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
        log_z, out, _ = _sums(what, scores.double(), rest[0], validate, rest[1] if len(rest) > 1 else None)
        return (torch.from_numpy(log_z), out)[: 1 if what == kernels.LOG_PARTITION else 2]
    if what == kernels.LOG_PARTITION:
        return (_log_partition(scores, *rest, validate=validate),)
    if what == kernels.MARGINALS:
        return _log_partition_marginals(scores, *rest, validate=validate)
    return torch.zeros(len(scores), dtype=torch.float64), _product(scores, *rest, validate=validate)
