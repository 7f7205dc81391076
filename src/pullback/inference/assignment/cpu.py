"""Matchings on the CPU, one example at a time."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from pullback.inference._numba.compile import no_alloc_kernel
from pullback.inference._numba.memory import empty_like
from pullback.inference._numba.packing import clear
from pullback.inference._numba.scratch import carve
from pullback.inference._numba.threads import scratch, spread
from pullback.inference.assignment.family import MATCHING
from pullback.inference.assignment.search import assign, bytes_for
from pullback.inference.front import checks
from pullback.inference.front.checks import BAD_SIZE, OK


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    (rows, columns), right = checks.in_range(MATCHING.layout, s.shape, (lengths, other_lengths))
    array, status = s.numpy(), np.zeros(len(s), np.int64)
    z = empty_like(s)
    if len(s) > 0:
        n, m = s.shape[1:]
        room = scratch(len(s), 8 * n + 64 + bytes_for(n, m))
        spread(_argmax, len(s), 4.0 * s.numel() * n, array.reshape(-1), rows, columns, z.numpy(), status, room)
    if not right:
        status[(rows != lengths.numpy()) | (columns != other_lengths.numpy())] = BAD_SIZE
    return checks.settled(z, status, validate)


@no_alloc_kernel
def _argmax(worker, workers, scores, rows, columns, z, status, room):
    (n, m), work, flat = z.shape[1:], room[worker], z.reshape(-1)
    column_of, at = carve(work, 0, n, np.int64)
    for b in range(worker, len(z), workers):
        clear(flat, b * n * m, (b + 1) * n * m)
        status[b] = assign(scores, b * n * m, m, rows[b], columns[b], column_of, work[at:])
        if status[b] == OK:
            for i in range(rows[b]):
                z[b, i, column_of[i]] = 1.0
