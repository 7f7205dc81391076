"""Matchings on the CPU, one example at a time."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import kernel
from pullback.inference._numba.threads import spread
from pullback.inference.assignment.family import MATCHING
from pullback.inference.assignment.search import assign, room_for
from pullback.inference.front import checks
from pullback.inference.front.checks import BAD_SIZE, INFEASIBLE, INFINITE, NAN, OK


def argmax(scores: Tensor, lengths: Tensor, other_lengths: Tensor, validate: bool) -> Tensor:
    s = scores.detach().contiguous()
    (rows, columns), right = checks.in_range(MATCHING.layout, s.shape, (lengths, other_lengths))
    z, status = torch.zeros_like(s), np.zeros(len(s), np.int64)
    if len(s) > 0:
        work = 4.0 * s.numel() * s.shape[1]
        spread(_argmax, len(s), work, s.numpy(), rows, columns, z.numpy(), status)
    if not right:
        status[(rows != lengths.numpy()) | (columns != other_lengths.numpy())] = BAD_SIZE
    return checks.settled(z, status, validate)


@kernel
def _argmax(worker, workers, scores, rows, columns, z, status):
    n, m = scores.shape[1], scores.shape[2]
    wide, room = np.empty(n * m), room_for(m)
    row_of, before, number = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    price, lowest, closed = np.empty(room), np.empty(room), np.empty(room)
    for b in range(worker, len(scores), workers):
        found = OK
        for i in range(rows[b]):
            for j in range(columns[b]):
                x = scores[b, i, j]
                wide[i * m + j] = x
                if not x < np.inf:
                    found = NAN if math.isnan(x) or found == NAN else INFINITE
        status[b] = found
        if found != OK:
            continue
        if assign(wide, m, rows[b], columns[b], row_of, price, lowest, closed, before, number):
            for j in range(columns[b]):
                if row_of[j] >= 0:
                    z[b, row_of[j], j] = 1.0
        else:
            status[b] = INFEASIBLE
