"""Projective dependency trees on a GPU: Triton kernels, one program a sentence, no synchronisation with the host.

The same for sentences of any length; what they need beside their scores is allocated, not kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.eisner import cuda_inside, cuda_layout, cuda_maximum, cuda_outside, cuda_sampling
from pullback.inference.triton_support import contiguous, launch, next_power_of_2, program_count


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    run = _Run(scores, squares=8)
    run(cuda_maximum.argmax, lengths, z, run.squares(4, scores.dtype), run.squares(5, torch.int16), multiroot)
    return z


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    return _log_partition(scores, lengths, multiroot)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    mu = torch.empty_like(scores, memory_format=torch.contiguous_format)
    run, parts = _Run(scores, charts=2), _parts(scores)
    charts = run.charts(torch.int64, parts)
    run(cuda_outside.marginals, lengths, mu, mu, charts, charts, multiroot, SLOPE=0, PARTS=parts)
    return mu


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    run, parts = _Run(scores, charts=3), _parts(scores)
    tensors = direction, out, run.charts(torch.int64, parts), run.charts(torch.float64)
    run(cuda_outside.marginals, lengths, *tensors, multiroot, SLOPE=1, PARTS=parts)
    return out


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    out = scores.new_empty(len(scores), dtype=torch.float64)
    run, parts = _Run(scores, charts=3), _parts(scores)
    tensors = out, run.charts(torch.int64, parts), run.charts(torch.float64)
    run(cuda_inside.log_partition, lengths, *tensors, multiroot, COMPANION=cuda_inside.ENTROPY, PARTS=parts)
    return out


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    run = _Run(scores, charts=2, squares=1)
    tensors = seeds, z, run.charts(torch.int64, 2), run.squares(1, torch.int32)
    run(cuda_sampling.sample, lengths, *tensors, multiroot, TERMS=next_power_of_2(max(scores.shape[-1], 2)))
    return z


def _log_partition(scores: Tensor, lengths: Tensor, multiroot: bool) -> Tensor:
    out = scores.new_empty(len(scores), dtype=torch.float64)
    run, parts = _Run(scores, charts=2), _parts(scores)
    charts = run.charts(torch.int64, parts)
    run(cuda_inside.log_partition, lengths, out, charts, charts, multiroot, COMPANION=cuda_inside.ALONE, PARTS=parts)
    return out


def _parts(scores: Tensor) -> int:
    """Elements of int64 in a number of cuda_numbers.py."""
    return 1 if scores.dtype == torch.float32 else 2


def _check(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> None:
    """Raise for the first sentence with trouble, if asked: this waits for the device."""
    if validate:
        status = checks.status_of(scores, lengths)
        infeasible = _log_partition(scores, lengths, multiroot) == -torch.inf
        status = torch.where(infeasible & (status == checks.OK), checks.INFEASIBLE, status)
        checks.raise_for(status, lengths, scores.shape[-1])


class _Run:
    """A launch for a batch of scores: its programs, their tiles, and their scratch.

    Args:
        scores: `[B, n, n]`.
        charts: how many sets of charts of 8 bytes a program needs, at most.
        squares: how many squares of n + 1 numbers of 8 bytes beside them, at most.
    """

    def __init__(self, scores: Tensor, charts: int = 0, squares: int = 0) -> None:
        self.scores = scores
        self.batch, self.n, _ = scores.shape
        self.tile, self.warps = _tile(self.n)
        self.size = cuda_layout.scratch_size(self.n, **self.tile)
        self.programs = program_count(self.batch, 8 * (charts * self.size + squares * (self.n + 1) ** 2))

    def charts(self, dtype: torch.dtype, parts: int = 1) -> Tensor:
        return self.scores.new_empty((self.programs, self.size * parts), dtype=dtype)

    def squares(self, count: int, dtype: torch.dtype) -> Tensor:
        return self.scores.new_empty((self.programs, count, (self.n + 1) ** 2), dtype=dtype)

    def __call__(self, kernel: Any, *args: Any, **flags: Any) -> None:
        *tensors, multiroot = args
        if self.batch > 0:
            tensors = [contiguous(x) for x in (self.scores, *tensors)]
            sizes = self.batch, self.n, int(multiroot)
            options = {"num_warps": self.warps, "num_stages": 1}
            launch(kernel, self.programs, self.scores.device, *tensors, *sizes, **flags, **self.tile, **options)


def _tile(n: int) -> tuple[dict[str, int], int]:
    """What a program looks at at once, and how many warps it has: one for each 32 lanes, so that rows stay in a thread."""
    lanes = min(max(16, 2 * next_power_of_2(n + 1)), 256)
    return {"ROWS": 8, "LANES": lanes}, max(1, lanes // 32)
