"""CTC's paths on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.threads import spread
from pullback.inference.ctc import kernels
from pullback.inference.ctc.family import CTC
from pullback.inference.ctc.ranked import topk as topk
from pullback.inference.ctc.tangents import tangents
from pullback.inference.front.by_mode import by_mode
from pullback.inference.front.checks import finish, in_range
from pullback.inference.front.modes import Mode

_NO_SEEDS = np.zeros(0, np.int64)


def argmax(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> Tensor:
    return _run(kernels.argmax, scores, sizes, blank, validate, True)[1]


def _by_mode(mode: Mode, which: int | slice, scores: Tensor, *rest: Tensor, blank: int, validate: bool) -> Any:
    """By the kernel of a mode; that of entropies, which have no direction, gets anything of its shape."""
    sizes, given = rest[:3], rest[3:]
    parts = mode not in (Mode.LOG_PARTITION, Mode.ENTROPY)
    if mode < Mode.TANGENT:
        seeds = given[0].contiguous().numpy() if given else _NO_SEEDS
        return _run(kernels.sums, scores, sizes, blank, validate, parts, int(mode), seeds)[which]
    direction = (given[0].to(scores.dtype) if given else scores).detach().contiguous().numpy()
    return _run(tangents, scores, sizes, blank, validate, parts, int(mode), direction)[which]


log_partition, marginals, log_partition_marginals, marginals_vjp, entropy, entropy_gradient, sample = by_mode(_by_mode)


def _run(
    kernel: Callable[..., Any], scores: Tensor, sizes: tuple[Tensor, ...], blank: int, validate: bool, parts: bool, *given: Any
) -> tuple[Tensor, Tensor]:
    """The values that a kernel finds for the examples, and, with `parts`, what it writes for the symbols."""
    s = scores.detach().contiguous()
    out = empty_like(s).zero_() if parts else s
    safe, right = in_range(CTC.layout, s.shape, sizes)
    value, codes = np.zeros(len(s)), np.zeros(len(s), np.bool_)
    if len(s) > 0:
        states = 2.0 * sizes[2].shape[1] + 2.0
        work = len(s) * s.shape[1] * ((60.0 if kernel is tangents else 20.0) * states + s.shape[2])
        spread(kernel, len(s), work, s.numpy(), *safe, blank, *given, out.numpy(), value, codes)
    results: tuple[Tensor, ...] = (torch.from_numpy(value), out) if parts else (torch.from_numpy(value),)
    if not right or codes.any():
        results = finish(CTC.layout, s, sizes, results, value, validate)
    return results[0], results[-1]
