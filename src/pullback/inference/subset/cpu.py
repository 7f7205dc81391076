"""Subsets on the CPU: several examples in SIMD lanes. Argmax and SparseMAP are short sorts and stay with the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.front import checks
from pullback.inference.front.modes import Mode
from pullback.inference.subset.sums import LANES, sums
from pullback.inference.subset.tangents import tangents

_NO_SEEDS = np.zeros(0, np.int64)


def log_partition(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(sums, Mode.LOG_PARTITION, scores, lengths, k, validate, _NO_SEEDS)[0]


def marginals(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return log_partition_marginals(scores, lengths, k, validate)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    return _run(sums, Mode.MARGINALS, scores, lengths, k, validate, _NO_SEEDS)


def sample(scores: Tensor, lengths: Tensor, k: Tensor, seeds: Tensor, validate: bool) -> Tensor:
    return _run(sums, Mode.SAMPLE, scores, lengths, k, validate, seeds.contiguous().numpy())[1]


def marginals_vjp(scores: Tensor, lengths: Tensor, k: Tensor, direction: Tensor, validate: bool) -> Tensor:
    array = direction.detach().to(scores.dtype).contiguous().numpy()
    return _run(tangents, Mode.TANGENT, scores, lengths, k, validate, array)[1]


def entropy(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(tangents, Mode.ENTROPY, scores, lengths, k, validate, scores.detach().contiguous().numpy())[0]


def entropy_gradient(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _run(tangents, Mode.ENTROPY_TANGENT, scores, lengths, k, validate, scores.detach().contiguous().numpy())[1]


def _run(
    kernel: Callable[..., Any], mode: Mode, scores: Tensor, lengths: Tensor, k: Tensor, validate: bool, given: np.ndarray
) -> tuple[Tensor, Tensor]:
    """The values that a kernel finds for the examples, and what it writes for the items.

    Those of examples with a bad status become NaN, or an error.
    """
    s = scores.detach().contiguous()
    out = s if mode in (Mode.LOG_PARTITION, Mode.ENTROPY) else torch.zeros_like(s)
    value, status = np.zeros(len(s)), np.zeros(len(s), np.int64)
    if len(s) > 0:
        sizes = lengths.contiguous().numpy(), k.contiguous().numpy()
        order = np.argsort(-sizes[0] * (sizes[1] + 1), kind="stable")
        work = (4.0 if kernel is sums else 12.0) * s.numel() * (float(sizes[1].max()) + 10.0)
        arrays = order, int(mode), given, out.numpy(), value, status
        spread(kernel, -(-len(s) // LANES), work, s.numpy(), *sizes, *arrays)
    results = (torch.from_numpy(value), *(() if out is s else (out,)))
    found = tuple(checks.settled(x, status, validate) for x in results)
    return found[0], found[-1]
