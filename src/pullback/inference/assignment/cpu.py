"""Matchings on the CPU, one example at a time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference import checks
from pullback.inference.assignment.family import MATCHING
from pullback.inference.assignment.search import assign
from pullback.inference.checks import INFEASIBLE
from pullback.inference.compile import kernel
from pullback.inference.threads import spread


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    layout, s = MATCHING.layout, scores.detach().contiguous()
    sizes = layout.in_range(s, (lengths, other_lengths))
    status = layout.status(s, (lengths, other_lengths))
    z = torch.zeros_like(s)
    if s.numel() > 0:
        work = 4.0 * float((sizes[0] * sizes[0] * sizes[1]).sum())
        arrays = s.numpy(), *(size.contiguous().numpy() for size in sizes), z.numpy(), status.numpy()
        spread(_argmax, len(s), work, *arrays)
    else:
        status = torch.where((status == checks.OK) & (sizes[0] > 0), INFEASIBLE, status)
    if status.any():
        if validate:
            checks.raise_for(status)
        z = torch.where((status != checks.OK)[:, None, None], torch.nan, z)
    return z


@kernel
def _argmax(worker, workers, scores, rows, columns, z, status):
    n, m = scores.shape[1], scores.shape[2]
    wide = np.empty(n * m)
    row_of, before = np.empty(m + 1, np.int32), np.empty(m + 1, np.int32)
    price, lowest, done = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1, np.bool_)
    for b in range(worker, len(scores), workers):
        if status[b] != 0:
            continue
        for i in range(rows[b]):
            for j in range(columns[b]):
                wide[i * m + j] = scores[b, i, j]
        if assign(wide, m, rows[b], columns[b], row_of, price, lowest, before, done):
            for j in range(columns[b]):
                if row_of[j] >= 0:
                    z[b, row_of[j], j] = 1.0
        else:
            status[b] = INFEASIBLE
