"""Subsets on the CPU, one example at a time: argmax and SparseMAP are short sorts and stay with the reference."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.subset import kernels
from pullback.inference.threads import spread


def log_partition(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(kernels.LOG_PARTITION, scores, lengths, k, validate)[1]


def marginals(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(kernels.MARGINALS, scores, lengths, k, validate)[0]


def log_partition_marginals(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    mu, log_z = _run(kernels.MARGINALS, scores, lengths, k, validate)
    return log_z, mu


def marginals_vjp(scores: Tensor, lengths: Tensor, k: Tensor, direction: Tensor, validate: bool) -> Tensor:
    return _run(kernels.SLOPE, scores, lengths, k, validate, direction=direction)[0]


def entropy(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(kernels.ENTROPY, scores, lengths, k, validate)[1]


def entropy_gradient(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(kernels.ENTROPY_SLOPE, scores, lengths, k, validate)[0]


def sample(scores: Tensor, lengths: Tensor, k: Tensor, seeds: Tensor, validate: bool) -> Tensor:
    return _run(kernels.SAMPLE, scores, lengths, k, validate, seeds=seeds)[0]


def _run(
    what: int,
    scores: Tensor,
    lengths: Tensor,
    k: Tensor,
    validate: bool,
    *,
    seeds: Tensor | None = None,
    direction: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    s = scores.detach().contiguous()
    batch = len(s)
    out, value = torch.zeros_like(s), torch.zeros(batch, dtype=torch.float64)
    status = torch.zeros(batch, dtype=torch.int64)
    along = s if direction is None else direction.detach().to(s.dtype).contiguous()
    stream = np.zeros(batch, np.int64) if seeds is None else seeds.contiguous().numpy()
    sizes = lengths.contiguous().numpy(), k.contiguous().numpy()
    if batch > 0:
        work = 4.0 * batch * s.shape[1] * (float(sizes[1].max()) + 10.0)
        arrays = s.numpy(), *sizes, what, stream, along.numpy(), out.numpy(), value.numpy(), status.numpy()
        spread(kernels.run, batch, work, *arrays)
    if status.any():
        if validate:
            checks.raise_for(status)
        bad = status != checks.OK
        return torch.where(bad[:, None], torch.nan, out), torch.where(bad, torch.nan, value)
    return out, value
