"""Subsets on the CPU: sums for several examples in SIMD lanes, the rest one example at a time.

Argmax and SparseMAP are short sorts and stay with the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.threads import spread
from pullback.inference.front import checks
from pullback.inference.front.modes import Mode
from pullback.inference.subset import kernels
from pullback.inference.subset import sums as lanes


def log_partition(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _sums(scores, lengths, k, validate, wanted=False)[0]


def marginals(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _sums(scores, lengths, k, validate, wanted=True)[1]


def log_partition_marginals(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    return _sums(scores, lengths, k, validate, wanted=True)


def marginals_vjp(scores: Tensor, lengths: Tensor, k: Tensor, direction: Tensor, validate: bool) -> Tensor:
    return _tangents(Mode.TANGENT, scores, lengths, k, validate, direction)[1]


def entropy(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _tangents(Mode.ENTROPY, scores, lengths, k, validate)[0]


def entropy_gradient(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool) -> Tensor:
    return _tangents(Mode.ENTROPY_TANGENT, scores, lengths, k, validate)[1]


def sample(scores: Tensor, lengths: Tensor, k: Tensor, seeds: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    z = torch.zeros_like(s)
    return _run(kernels.sample, s, lengths, k, validate, (z,), seeds.contiguous().numpy(), z.numpy())[0]


def _sums(scores: Tensor, lengths: Tensor, k: Tensor, validate: bool, *, wanted: bool) -> tuple[Tensor, Tensor]:
    s = scores.detach().contiguous()
    out, value = torch.empty_like(s) if wanted else s, torch.zeros(len(s), dtype=torch.float64)
    results = (value, out) if wanted else (value,)
    order = np.argsort(-lengths.numpy(), kind="stable")
    found = _run(lanes.sums, s, lengths, k, validate, results, order, wanted, out.numpy(), value.numpy(), group=lanes.LANES)
    return found[0], found[-1]


def _tangents(
    mode: Mode, scores: Tensor, lengths: Tensor, k: Tensor, validate: bool, direction: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    s = scores.detach().contiguous()
    out, value = torch.zeros_like(s), torch.zeros(len(s), dtype=torch.float64)
    given = s if direction is None else direction.detach().to(s.dtype).contiguous()
    arrays = int(mode), given.numpy(), out.numpy(), value.numpy()
    found = _run(kernels.tangents, s, lengths, k, validate, (value, out), *arrays)
    return found[0], found[1]


def _run(
    kernel: Callable[..., Any],
    scores: Tensor,
    lengths: Tensor,
    k: Tensor,
    validate: bool,
    results: tuple[Tensor, ...],
    *arrays: Any,
    group: int = 1,
) -> tuple[Tensor, ...]:
    """Run a kernel that writes the results; those of examples with a bad status become NaN, or an error."""
    count, status = len(scores), np.zeros(len(scores), np.int64)
    if count > 0:
        sizes = lengths.contiguous().numpy(), k.contiguous().numpy()
        work = 4.0 * scores.numel() * (float(sizes[1].max()) + 10.0)
        spread(kernel, -(-count // group), work, scores.numpy(), *sizes, *arrays, status)
    return tuple(checks.settled(x, status, validate) for x in results)
