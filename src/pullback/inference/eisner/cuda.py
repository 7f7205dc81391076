"""Projective dependency trees on a GPU: Triton kernels, one program a sentence, no synchronisation with the host."""

from __future__ import annotations

import torch
from torch import Tensor

from pullback.inference.eisner import cuda_maximum
from pullback.inference.triton_support import contiguous, launch, program_count


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    batch, n, _ = scores.shape
    z = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if z.numel() > 0:
        size = (n + 1) ** 2
        programs = program_count(batch, size * (4 * scores.itemsize + 10))
        charts = scores.new_empty((programs, 4, size))
        splits = scores.new_empty((programs, 5, size), dtype=torch.int16)
        tensors = contiguous(scores), lengths, z, charts, splits
        launch(cuda_maximum.argmax, programs, scores.device, *tensors, batch, n, int(multiroot), ROWS=8, COLUMNS=16)
    return z
