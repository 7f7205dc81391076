"""Non-projective argmax on the CPU: one sentence after the other, the batch spread over threads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import called, no_alloc_kernel
from pullback.inference._numba.scratch import carve
from pullback.inference._numba.threads import scratch, spread
from pullback.inference.chu_liu_edmonds.kernels import best_heads, bytes_for, workspace
from pullback.inference.front import checks
from pullback.inference.front.checks import BAD_SIZE, INFINITE, NAN, OK


def argmax(scores: Tensor, lengths: Tensor, multiroot: bool, validate: bool) -> Tensor:
    z = torch.zeros(scores.shape, dtype=scores.dtype)
    status, length = np.zeros(len(z), np.int64), lengths.contiguous().numpy()
    work = 1.5 * float(np.dot(length, length))
    room, array = scratch(len(z), bytes_for(z.shape[-1])), scores.detach().contiguous().numpy()
    spread(_argmax, len(room), work, array, length, room, z.numpy(), status, multiroot)
    return checks.settled(z, status, validate)


@no_alloc_kernel
def _argmax(worker, workers, scores, lengths, room, z, status, multiroot):
    batch, n, _ = scores.shape
    work, at = workspace(room[worker], n)
    flat, at = carve(room[worker], at, n * n, np.float64)
    heads, at = carve(room[worker], at, n, np.int16)
    words = flat.reshape(n, n)
    for b in range(worker, batch, workers):
        length = lengths[b]
        status[b] = _read(scores[b], length, words)
        if status[b] == OK:
            status[b] = best_heads(words, length, multiroot, work, heads)
        if status[b] == OK:
            for m in range(length):
                z[b, heads[m], m] = 1.0


@called
def _read(scores, length, words):
    """Copy a sentence's real scores, in float64, checking them."""
    if length < 0 or length > words.shape[0]:
        return BAD_SIZE
    nan, infinite = False, False
    for h in range(length):
        for m in range(length):
            x = scores[h, m]
            nan |= x != x
            infinite |= x == np.inf
            words[h, m] = x
    return NAN if nan else INFINITE if infinite else OK
