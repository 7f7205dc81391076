"""Projective dependency trees on a GPU: Triton kernels, one program a sentence, no synchronisation with the host.

The same for sentences of any length; what they need beside their scores is allocated, not kept.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pullback.inference._triton.support import (
    contiguous,
    interpreting,
    launch,
    next_power_of_2,
    program_count,
    unproven,
)
from pullback.inference.eisner import cuda_charts, cuda_inside, cuda_layout, cuda_maximum, cuda_outside, cuda_sampling
from pullback.inference.front import checks
from pullback.inference.trees.family import TREES


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if unproven() and scores.dtype == torch.float32 and scores.shape[1] <= cuda_charts.LONGEST:
        _short_argmax(contiguous(scores), contiguous(lengths), z, multiroot)
        return z
    plan = _plan(*scores.shape[:2], squares=8)
    scratch = plan.squares(scores, 4, scores.dtype), plan.squares(scores, 5, torch.int16)
    plan.run(cuda_maximum.argmax, scores, lengths, z, *scratch, multiroot=multiroot)
    return z


def _short_argmax(scores: Tensor, lengths: Tensor, z: Tensor, multiroot: bool) -> None:
    batch, n, _ = scores.shape
    levels = max(n.bit_length(), 3 if interpreting() else 5)
    pitch = cuda_charts.scratch_of_charts(levels)
    programs = program_count(batch, 4 * pitch)
    if scores.numel() > 0:
        tensors = scores, lengths, z, scores.new_empty((programs, pitch), dtype=torch.int32)
        numbers = batch, n, int(multiroot), pitch
        shape = {"LEVELS": levels, "num_warps": 1 << (levels - 3), "num_stages": 1}
        launch(cuda_maximum.short, programs, scores.device, *tensors, *numbers, **shape)


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    return _log_partition(scores, lengths, multiroot)


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    mu = torch.empty_like(scores, memory_format=torch.contiguous_format)
    plan, parts = _plan(*scores.shape[:2], charts=2), _parts(scores)
    charts = plan.charts(scores, torch.int64, parts)
    tensors = mu, mu, charts, charts
    plan.run(cuda_outside.marginals, scores, lengths, *tensors, multiroot=multiroot, COMPANION=cuda_inside.ALONE, PARTS=parts)
    return mu


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    plan, parts = _plan(*scores.shape[:2], charts=3), _parts(scores)
    charts = plan.charts(scores, torch.int64, parts), plan.charts(scores, torch.float64)
    tensors = direction.contiguous(), out, *charts
    flags = {"COMPANION": cuda_inside.SLOPE, "PARTS": parts}
    plan.run(cuda_outside.marginals, scores, lengths, *tensors, multiroot=multiroot, **flags)
    return out


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    plan = _plan(*scores.shape[:2], charts=3)
    tensors = out, out, plan.charts(scores, torch.int64, 2), plan.charts(scores, torch.float64)
    flags = {"COMPANION": cuda_inside.ENTROPY, "PARTS": 2}  # in float64
    plan.run(cuda_outside.marginals, scores, lengths, *tensors, multiroot=multiroot, **flags)
    return out


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    out = scores.new_empty(len(scores), dtype=torch.float64)
    plan, parts = _plan(*scores.shape[:2], charts=3), _parts(scores)
    tensors = out, plan.charts(scores, torch.int64, parts), plan.charts(scores, torch.float64)
    flags = {"COMPANION": cuda_inside.ENTROPY, "PARTS": parts}
    plan.run(cuda_inside.log_partition, scores, lengths, *tensors, multiroot=multiroot, **flags)
    return out


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    if validate:
        _check(scores, lengths, multiroot)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    plan = _plan(*scores.shape[:2], charts=2, squares=1)
    tensors = seeds.contiguous(), z, plan.charts(scores, torch.int64, 2), plan.squares(scores, 1, torch.int32)
    terms = next_power_of_2(max(plan.n, 2))
    plan.run(cuda_sampling.sample, scores, lengths, *tensors, multiroot=multiroot, TERMS=terms)
    return z


def _log_partition(scores: Tensor, lengths: Tensor, multiroot: bool) -> Tensor:
    out = scores.new_empty(len(scores), dtype=torch.float64)
    plan, parts = _plan(*scores.shape[:2], charts=2), _parts(scores)
    charts = plan.charts(scores, torch.int64, parts)
    flags = {"COMPANION": cuda_inside.ALONE, "PARTS": parts}
    plan.run(cuda_inside.log_partition, scores, lengths, out, charts, charts, multiroot=multiroot, **flags)
    return out


def _parts(scores: Tensor) -> int:
    """Elements of int64 in a number of cuda_numbers.py."""
    return 1 if scores.dtype == torch.float32 else 2


def _check(scores: Tensor, lengths: Tensor, multiroot: bool) -> None:
    """Raise for the first sentence with trouble: this waits for the device."""
    status = TREES.layout.status(scores, (lengths,))
    infeasible = _log_partition(scores, lengths, multiroot).isnan()
    status = torch.where(infeasible & (status == checks.OK), checks.INFEASIBLE, status)
    checks.raise_for(status)


@dataclass(frozen=True)
class _Plan:
    """How to launch a kernel for a batch of sentences.

    Attributes:
        batch: how many.
        n: how many words they have at most.
        programs: how many programs share them.
        size: how many numbers the charts of a program have.
        shape: what a program looks at at once, and its warps.
    """

    batch: int
    n: int
    programs: int
    size: int
    shape: dict[str, int]

    def charts(self, scores: Tensor, dtype: torch.dtype, parts: int = 1) -> Tensor:
        """Scratch for the charts of all programs."""
        return scores.new_empty((self.programs, self.size * parts), dtype=dtype)

    def squares(self, scores: Tensor, count: int, dtype: torch.dtype) -> Tensor:
        """Scratch for `count` squares of n + 1 numbers, for all programs."""
        return scores.new_empty((self.programs, count, (self.n + 1) ** 2), dtype=dtype)

    def run(self, kernel: Any, scores: Tensor, lengths: Tensor, *tensors: Tensor, multiroot: bool, **flags: int) -> None:
        """Launch a kernel, unless there is nothing to do; further tensors are contiguous."""
        if self.batch > 0:
            tensors = scores.contiguous(), lengths.contiguous(), *tensors
            sizes = self.batch, self.n, int(multiroot)
            launch(kernel, self.programs, scores.device, *tensors, *sizes, **flags, **self.shape)


@functools.lru_cache(maxsize=1024)
def _plan(batch: int, n: int, *, charts: int = 0, squares: int = 0) -> _Plan:
    """The plan for a kernel whose programs need so many sets of charts and squares of n + 1, of 8 bytes, at most."""
    tile, warps = _tile(n)
    size = cuda_layout.scratch_size(n, **tile)
    programs = program_count(batch, 8 * (charts * size + squares * (n + 1) ** 2))
    return _Plan(batch, n, programs, size, tile | {"num_warps": warps, "num_stages": 1})


def _tile(n: int) -> tuple[dict[str, int], int]:
    """What a program looks at at once, and how many warps it has: one for each 32 lanes, so that rows stay in a thread."""
    lanes = min(max(16, 2 * next_power_of_2(n + 1)), 256)
    return {"ROWS": 8, "LANES": lanes}, max(1, lanes // 32)
