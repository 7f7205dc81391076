"""Projective dependency trees on the CPU: compiled, several sentences in SIMD lanes, groups of them over threads.

Sums over trees run in float32 or float64 as the scores are; sentences whose values leave that range are
computed again in float64, and those that leave that one too in logarithms (scaling.py says when).
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from pullback.inference.eisner import log_domain, marginal_kernels, maximum, sampling
from pullback.inference.eisner.batch import Attempt, Batch, widening
from pullback.inference.threads import spread
from pullback.inference.trees import TREES, from_heads

_FLOAT32_WORDS = 56  # sums over the trees of more words leave the range of float32 for most scores


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = Batch(scores, lengths)
    z = torch.empty_like(batch.scores)
    batch.run(maximum.argmax, 3, 6, multiroot, z.numpy())
    return batch.settle(z, validate)


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        return _marginals(batch, multiroot, alone=True)[1]

    return _wide(Batch(scores, lengths), in_lanes, lambda batch: _in_logs(batch, multiroot)[2], validate)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        return _marginals(batch, multiroot)[0]

    return _wide(Batch(scores, lengths), in_lanes, lambda batch: _in_logs(batch, multiroot)[0], validate)


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch = Batch(scores, lengths, direction.detach().contiguous())
    return _wide(batch, lambda part: _product(part, multiroot), lambda part: _in_logs(part, multiroot)[1], validate)


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """In lanes H = log Z - <log w, mu> of weights w in the range of float64, in logarithms from the sweep's choices."""

    def in_lanes(batch: Batch) -> Tensor:
        shifted = _shifted(batch.scores, batch.lengths)
        batch.arrays = shifted.numpy(), *batch.arrays[1:]
        mu, log_z = _marginals(batch, multiroot)
        return (log_z - torch.where(mu > 0, mu * shifted, 0.0).sum((1, 2))).clamp_min(0.0)

    batch = Batch(scores.double(), lengths)
    return _wide(batch, in_lanes, lambda part: _in_logs(part, multiroot, entropic=True)[3], validate)


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    """The derivative of the entropy in each score: in lanes -J log w, in logarithms without scores."""
    scores = scores.detach()
    batch = Batch(scores, lengths, _shifted(scores, lengths))
    in_logs = functools.partial(_in_logs, multiroot=multiroot, entropic=True)
    return _wide(batch, lambda part: _product(part, multiroot).neg_(), lambda part: in_logs(part)[1], validate)


def _marginals(batch: Batch, multiroot: bool, alone: bool = False) -> tuple[Tensor, Tensor]:
    """Marginals and log-partitions; or these alone, and nothing."""
    mu, log_z = torch.empty_like(batch.scores[:0] if alone else batch.scores), np.empty(len(batch.scores))
    batch.run(marginal_kernels.marginals, 3 if alone else 9, 5, multiroot, mu.numpy(), log_z)
    return mu, torch.from_numpy(log_z)


def _product(batch: Batch, multiroot: bool) -> Tensor:
    """The derivative of the marginals along the batch's direction."""
    out, log_z = torch.empty_like(batch.scores), np.empty(len(batch.scores))
    batch.run(marginal_kernels.marginals_vjp, 27, 10, multiroot, _extra(batch), out.numpy(), log_z)
    return out


def _shifted(scores: Tensor, lengths: Tensor) -> Tensor:
    """Scores less each column's largest, zeros in the padding."""
    if scores.numel() == 0:
        return scores.contiguous()
    mask = TREES.layout.mask(scores, (lengths,))
    real = torch.where(mask, scores, 0.0)
    top = torch.where(mask.any(2, keepdim=True), real, -torch.inf).amax(1, keepdim=True)
    return (real - torch.where(torch.isfinite(top), top, 0.0)).contiguous()


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    def in_lanes(batch: Batch) -> Tensor:
        heads = torch.full(batch.scores.shape[:2], -1)
        batch.run(sampling.sample, 3, 5, multiroot, _extra(batch), heads.numpy())
        return from_heads(heads, torch.float64)

    def in_logs(batch: Batch) -> Tensor:
        heads = torch.full(batch.scores.shape[:2], -1)
        array, length, _ = batch.arrays
        outputs = _extra(batch), multiroot, heads.numpy(), batch.status
        spread(sampling.sample_in_logs, len(length), np.inf, array, length, *outputs)
        return from_heads(heads, torch.float64)

    batch = Batch(scores.double(), lengths, seeds)
    return _wide(batch, in_lanes, in_logs, validate).to(scores.dtype)


def _wide(batch: Batch, in_lanes: Attempt, in_logs: Attempt, validate: bool) -> Tensor:
    """In lanes of the scores' own precision, then of float64, then in logarithms."""
    attempts = [in_lanes, in_logs]
    if batch.scores.dtype == torch.float32:
        attempts.insert(0, in_lanes)
        if batch.longest > _FLOAT32_WORDS:
            batch.leave_out(batch.arrays[1] > _FLOAT32_WORDS)
    return batch.settle(widening(batch, attempts), validate)


def _in_logs(batch: Batch, multiroot: bool, entropic: bool = False) -> tuple[Tensor, ...]:
    """Marginals, their derivative along the batch's direction or the entropy's gradient, log-partitions, entropies."""
    array, length, _ = batch.arrays
    mu, slope = torch.empty_like(batch.scores), torch.empty_like(batch.scores)
    log_z, nats = np.empty(len(length)), np.empty(len(length))
    direction = np.zeros_like(array) if entropic or batch.extra is None else _extra(batch)
    outputs = mu.numpy(), slope.numpy(), log_z, nats, batch.status
    spread(log_domain.marginals, len(length), np.inf, array, direction, float(entropic), length, multiroot, *outputs)
    return mu, slope, torch.from_numpy(log_z), torch.from_numpy(nats)


def _extra(batch: Batch) -> np.ndarray:
    assert batch.extra is not None
    return batch.extra.numpy()
