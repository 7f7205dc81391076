"""Projective dependency trees on a GPU: Triton kernels, one program a sentence, no synchronisation with the host.

The same for sentences of any length; what they need beside their scores is allocated, not kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.eisner import cuda_inside, cuda_maximum, cuda_outside, cuda_sampling
from pullback.inference.triton_support import contiguous, launch, next_power_of_2, program_count


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    programs, charts, splits = _scratch(scores, (4, scores.dtype), (5, torch.int16))
    _run(cuda_maximum.argmax, programs, scores, lengths, z, charts, splits, multiroot)
    return z


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    return _log_partition(scores, lengths, multiroot)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    mu = torch.empty_like(scores, memory_format=torch.contiguous_format)
    programs, charts = _scratch(scores, (7, torch.float64))
    _run(cuda_outside.marginals, programs, scores, lengths, mu, mu, charts, charts, multiroot, SLOPE=0)
    return mu


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    programs, charts, slopes = _scratch(scores, (7, torch.float64), (7, torch.float64))
    tensors = lengths, contiguous(direction), out, charts, slopes
    _run(cuda_outside.marginals, programs, scores, *tensors, multiroot, SLOPE=1)
    return out


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    out = scores.new_empty(len(scores), dtype=torch.float64)
    programs, charts, means = _scratch(scores, (5, torch.float64), (5, torch.float64))
    _run(cuda_inside.log_partition, programs, scores, lengths, out, charts, means, multiroot, COMPANION=2)
    return out


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    programs, charts, stack = _scratch(scores, (5, torch.float64), (1, torch.int32))
    terms = next_power_of_2(max(scores.shape[-1], 2))
    _run(cuda_sampling.sample, programs, scores, lengths, seeds, z, charts, stack, multiroot, TERMS=terms)
    return z


def _log_partition(scores: Tensor, lengths: Tensor, multiroot: bool) -> Tensor:
    out = scores.new_empty(len(scores), dtype=torch.float64)
    programs, charts = _scratch(scores, (5, torch.float64))
    _run(cuda_inside.log_partition, programs, scores, lengths, out, charts, charts, multiroot, COMPANION=0)
    return out


def _check(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> None:
    """Raise for the first sentence with trouble, if asked: this waits for the device."""
    if validate:
        status = checks.status_of(scores, lengths)
        infeasible = _log_partition(scores, lengths, multiroot) == -torch.inf
        status = torch.where(infeasible & (status == checks.OK), checks.INFEASIBLE, status)
        checks.raise_for(status, lengths, scores.shape[-1])


def _scratch(scores: Tensor, *kinds: tuple[int, torch.dtype]) -> tuple[Any, ...]:
    """How many programs to run, and for each kind a buffer with so many charts of a dtype for each of them."""
    size = (scores.shape[-1] + 1) ** 2
    programs = program_count(len(scores), size * sum(count * dtype.itemsize for count, dtype in kinds))
    return programs, *(scores.new_empty((programs, count, size), dtype=dtype) for count, dtype in kinds)


def _run(kernel: Any, programs: int, scores: Tensor, *args: Any, **flags: Any) -> None:
    *tensors, multiroot = args
    batch, n, _ = scores.shape
    if batch > 0:
        launch(
            kernel, programs, scores.device, contiguous(scores), *tensors, batch, n, int(multiroot),
            **flags, **_shape(kernel, n),
        )  # fmt: skip


def _shape(kernel: Any, n: int) -> dict[str, int]:
    """The tile that a program looks at at once, and how many warps it has."""
    return {"ROWS": 8, "LANES": min(max(16, 2 * next_power_of_2(n + 1)), 128), "num_warps": 4, "num_stages": 1}
