"""Monotone alignments on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.threads import spread
from pullback.inference.alignment import kernels, maximum
from pullback.inference.alignment.family import ALIGNMENT
from pullback.inference.alignment.tangents import tangents
from pullback.inference.front.checks import finish
from pullback.inference.front.modes import Mode

_NO_SEEDS = np.zeros(0, np.int64)


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _run(maximum.argmax, scores, (lengths, other_lengths), moves, validate, True)[1]


def log_partition(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    given = int(Mode.LOG_PARTITION), _NO_SEEDS
    return torch.from_numpy(_run(kernels.sums, scores, (lengths, other_lengths), moves, validate, False, *given)[0])


def marginals(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return log_partition_marginals(scores, lengths, other_lengths, moves, validate)[1]


def log_partition_marginals(
    scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool
) -> tuple[Tensor, Tensor]:
    given = int(Mode.MARGINALS), _NO_SEEDS
    value, mu = _run(kernels.sums, scores, (lengths, other_lengths), moves, validate, True, *given)
    return torch.from_numpy(value), mu


def sample(scores: Tensor, lengths: Tensor, other_lengths: Tensor, seeds: Tensor, moves: str, validate: bool) -> Tensor:
    given = int(Mode.SAMPLE), seeds.contiguous().numpy()
    return _run(kernels.sums, scores, (lengths, other_lengths), moves, validate, True, *given)[1]


def marginals_vjp(
    scores: Tensor, lengths: Tensor, other_lengths: Tensor, direction: Tensor, moves: str, validate: bool
) -> Tensor:
    given = int(Mode.TANGENT), _array(direction.to(scores.dtype))
    return _run(tangents, scores, (lengths, other_lengths), moves, validate, True, *given)[1]


def entropy(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    given = int(Mode.ENTROPY), _array(scores)
    return torch.from_numpy(_run(tangents, scores, (lengths, other_lengths), moves, validate, False, *given)[0])


def entropy_gradient(scores: Tensor, lengths: Tensor, other_lengths: Tensor, moves: str, validate: bool) -> Tensor:
    return _run(tangents, scores, (lengths, other_lengths), moves, validate, True, int(Mode.ENTROPY_TANGENT), _array(scores))[1]


def _array(x: Tensor) -> np.ndarray:
    """The numbers of a direction; of entropies, which have none, anything of its shape."""
    return x.detach().contiguous().numpy()


def _run(
    kernel: Callable[..., Any],
    scores: Tensor,
    sizes: tuple[Tensor, Tensor],
    moves: str,
    validate: bool,
    parts: bool,
    *given: Any,
) -> tuple[np.ndarray, Tensor]:
    """The values that a kernel finds for the examples, and, with `parts`, what it writes for the cells."""
    s = scores.detach().contiguous()
    out = empty_like(s) if parts else s
    value, codes = np.zeros(s.shape[0]), np.zeros(s.shape[0], np.bool_)
    if len(value) > 0:
        lengths = [size.contiguous().numpy() for size in sizes]
        work = (60.0 if kernel is tangents else 20.0) * s.numel()
        spread(kernel, len(value), work, s.numpy(), *lengths, moves == "any", *given, out.numpy(), value, codes)
    if np.count_nonzero(codes) == 0:  # sooner than `any`
        return value, out
    found, *cells = finish(ALIGNMENT.layout, s, sizes, (torch.from_numpy(value), out)[: 1 + parts], value, validate)
    return found.numpy(), cells[0] if parts else out
