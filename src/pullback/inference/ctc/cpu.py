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
from pullback.inference.front.checks import finish, in_range
from pullback.inference.front.modes import Mode

_NO_SEEDS = np.zeros(0, np.int64)


def argmax(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> Tensor:
    return _run(kernels.argmax, scores, sizes, blank, validate, True)[1]


def log_partition(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> Tensor:
    return _run(kernels.sums, scores, sizes, blank, validate, False, int(Mode.LOG_PARTITION), _NO_SEEDS)[0]


def marginals(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> Tensor:
    return log_partition_marginals(scores, *sizes, blank=blank, validate=validate)[1]


def log_partition_marginals(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> tuple[Tensor, Tensor]:
    return _run(kernels.sums, scores, sizes, blank, validate, True, int(Mode.MARGINALS), _NO_SEEDS)


def sample(scores: Tensor, *rest: Tensor, blank: int, validate: bool) -> Tensor:
    *sizes, seeds = rest
    return _run(kernels.sums, scores, tuple(sizes), blank, validate, True, int(Mode.SAMPLE), seeds.contiguous().numpy())[1]


def marginals_vjp(scores: Tensor, *rest: Tensor, blank: int, validate: bool) -> Tensor:
    *sizes, direction = rest
    array = direction.detach().to(scores.dtype).contiguous().numpy()
    return _run(tangents, scores, tuple(sizes), blank, validate, True, int(Mode.TANGENT), array)[1]


def entropy(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> Tensor:
    return _run(tangents, scores, sizes, blank, validate, False, int(Mode.ENTROPY), _array(scores))[0]


def entropy_gradient(scores: Tensor, *sizes: Tensor, blank: int, validate: bool) -> Tensor:
    return _run(tangents, scores, sizes, blank, validate, True, int(Mode.ENTROPY_TANGENT), _array(scores))[1]


def _array(x: Tensor) -> np.ndarray:
    """The place of a direction, where there is none: anything of its shape."""
    return x.detach().contiguous().numpy()


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
