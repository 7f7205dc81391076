"""Non-projective expectations and samples on a GPU: Triton kernels, one program a sentence, no synchronisation with the
host. All sums are in logs and float64, so that scores may be of any size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pullback.inference._triton.support import contiguous, launch, next_power_of_2, program_count
from pullback.inference.front import checks
from pullback.inference.matrix_tree import cuda_marginals, cuda_sampling
from pullback.inference.matrix_tree.cuda_elimination import ALONE, ENTROPY, SLOPE
from pullback.inference.trees.family import TREES


def log_partition(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    log_z = scores.new_zeros(len(scores), dtype=torch.float64)
    _run(cuda_marginals.log_partition, 1, scores, lengths, log_z, multiroot=multiroot, COMPANION=ALONE)
    if validate:
        status = TREES.layout.status(scores, (lengths,))
        infeasible = log_z.isnan() & (status == checks.OK)
        checks.raise_for(torch.where(infeasible, checks.INFEASIBLE, status))
    return log_z


def marginals(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    mu = torch.empty_like(scores, memory_format=torch.contiguous_format)
    _run(cuda_marginals.marginals, 2, scores, lengths, scores, mu, multiroot=multiroot, COMPANION=ALONE)
    return mu


def marginals_vjp(scores: Tensor, lengths: Tensor, direction: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    _run(cuda_marginals.marginals, 4, scores, lengths, direction, out, multiroot=multiroot, COMPANION=SLOPE)
    return out


def entropy(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    h = scores.new_zeros(len(scores), dtype=torch.float64)
    _run(cuda_marginals.log_partition, 2, scores, lengths, h, multiroot=multiroot, COMPANION=ENTROPY)
    return h


def entropy_gradient(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    _run(cuda_marginals.marginals, 4, scores, lengths, scores, out, multiroot=multiroot, COMPANION=ENTROPY)
    return out


def sample(scores: Tensor, lengths: Tensor, seeds: Tensor, multiroot: bool, validate: bool) -> Tensor:
    _check(scores, lengths, multiroot, validate)
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    levels = _shape(scores.shape[-1])["COLUMNS"].bit_length() - 1
    _run(cuda_sampling.sample, 1, scores, lengths, seeds, z, multiroot=multiroot, LEVELS=levels)
    return z


def _check(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> None:
    """Raise for the first sentence with trouble, if asked: this waits for the device."""
    if validate:
        log_partition(scores, lengths, multiroot, validate)


def _run(kernel: Any, charts: int, scores: Tensor, *tensors: Tensor, multiroot: bool, **flags: int) -> None:
    """Launch a kernel with so many charts for each program."""
    batch, n, _ = scores.shape
    if scores.numel() == 0:
        return
    programs = program_count(batch, 8 * (charts * n * n + 2 * n))
    scratch = (scores.new_empty((programs, size), dtype=torch.float64) for size in (charts * n * n, 2 * n))
    arguments = *(contiguous(x) for x in (scores, *tensors)), *scratch, batch, n, int(multiroot)
    launch(kernel, programs, scores.device, *arguments, **flags, **_shape(n))


def _shape(n: int) -> dict[str, int]:
    """How the kernels cut sentences of up to n words into tiles."""
    columns = max(16, next_power_of_2(n))
    warps = 4 if columns <= 32 else 8
    rows = min(max(256 * warps // columns, 1), columns)  # 8 numbers a thread
    return {"ROWS": rows, "COLUMNS": columns, "num_warps": warps, "num_stages": 1}
