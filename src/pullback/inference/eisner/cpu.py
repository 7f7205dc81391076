"""Projective dependency trees on the CPU: compiled, several sentences in SIMD lanes, groups of them over threads.

Sums over trees run in float32 or float64 as the scores are; sentences whose values leave that range are
computed again in float64, and those that leave that one too in logarithms (scaling.py says when).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.eisner import log_domain, marginal_kernels, maximum, sampling
from pullback.inference.eisner.batch import Attempt, Batch, widening
from pullback.inference.threads import spread
from pullback.inference.trees import from_heads

_FLOAT32_WORDS = 56  # sums over the trees of more words leave the range of float32 for most scores


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = Batch(scores, lengths)
    z = torch.empty_like(batch.scores)
    spread(maximum.argmax, *batch.cost(3), *batch.arrays, multiroot, z.numpy(), batch.status)
    batch.check(validate)
    return z


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        log_z = np.empty(len(batch.scores))
        spread(marginal_kernels.log_partition, *batch.cost(3), *batch.arrays, multiroot, log_z, batch.status)
        return torch.from_numpy(log_z)

    return _wide(Batch(scores, lengths), in_lanes, lambda batch: _in_logs(batch, multiroot)[2], validate)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        mu, log_z = torch.empty_like(batch.scores), np.empty(len(batch.scores))
        kernel = marginal_kernels.marginals
        spread(kernel, *batch.cost(9), *batch.arrays, multiroot, mu.numpy(), log_z, batch.status)
        return mu

    return _wide(Batch(scores, lengths), in_lanes, lambda batch: _in_logs(batch, multiroot)[0], validate)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        out, log_z = torch.empty_like(batch.scores), np.empty(len(batch.scores))
        outputs = _extra(batch), multiroot, out.numpy(), log_z, batch.status
        spread(marginal_kernels.marginals_vjp, *batch.cost(27), *batch.arrays, *outputs)
        return out

    batch = Batch(scores, lengths, direction.detach().contiguous())
    return _wide(batch, in_lanes, lambda part: _in_logs(part, multiroot)[1], validate)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """H = log Z - <s, mu>, less each column's largest score first: large scores then do not cancel."""
    if scores.numel() == 0:
        return torch.zeros(scores.shape[0], dtype=torch.float64)
    real = checks.only_words(scores.double(), lengths)
    top = real.amax(1, keepdim=True)
    shifted = real - torch.where(torch.isfinite(top), top, 0.0)
    log_z = log_partition(shifted, lengths, multiroot, validate)
    mu = marginals(shifted, lengths, multiroot, validate)
    used = torch.where(mu > 0, shifted, 0.0)
    return (log_z - (mu * used).sum((1, 2))).clamp_min(0.0)


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        heads = torch.full(batch.scores.shape[:2], -1)
        outputs = _extra(batch), multiroot, heads.numpy(), batch.status
        spread(sampling.sample, *batch.cost(3), *batch.arrays, *outputs)
        return heads

    def in_logs(batch: Batch) -> Tensor:
        heads = torch.full(batch.scores.shape[:2], -1)
        array, length, _ = batch.arrays
        outputs = _extra(batch), multiroot, heads.numpy(), batch.status
        spread(sampling.sample_in_logs, len(length), np.inf, array, length, *outputs)
        return heads

    batch = Batch(scores.double(), lengths, seeds)
    return from_heads(_wide(batch, in_lanes, in_logs, validate), scores.dtype)


def _wide(batch: Batch, in_lanes: Attempt, in_logs: Attempt, validate: bool) -> Tensor:
    """In lanes of the scores' own precision, then of float64, then in logarithms."""
    attempts = [in_lanes, in_logs]
    if batch.scores.dtype == torch.float32:
        attempts.insert(0, in_lanes)
        if batch.longest > _FLOAT32_WORDS:
            batch.leave_out(batch.arrays[1] > _FLOAT32_WORDS)
    result = widening(batch, attempts)
    batch.check(validate)
    return result


def _in_logs(batch: Batch, multiroot: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Marginals, their derivative along the batch's direction, and log-partitions."""
    array, length, _ = batch.arrays
    mu, slope = torch.empty_like(batch.scores), torch.empty_like(batch.scores)
    log_z = np.empty(len(length))
    direction = np.zeros_like(array) if batch.extra is None else _extra(batch)
    outputs = mu.numpy(), slope.numpy(), log_z, batch.status
    spread(log_domain.marginals, len(length), np.inf, array, direction, length, multiroot, *outputs)
    return mu, slope, torch.from_numpy(log_z)


def _extra(batch: Batch) -> np.ndarray:
    assert batch.extra is not None
    return batch.extra.numpy()
