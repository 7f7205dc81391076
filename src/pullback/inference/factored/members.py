"""Tag sequences as 0/1 tensors on the CPU: their tags, and how often they have each of the scores of a factored chain."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pullback.inference._numba.compile import kernel, subroutine
from pullback.inference._numba.lanes import lanes_in, load, splat
from pullback.inference._numba.memory import empty
from pullback.inference._numba.packing import clear
from pullback.inference._numba.rows import load_first, lowest_bit, nonzero
from pullback.inference._numba.threads import spread
from pullback.inference._torch import derivatives
from pullback.inference.front.plan import backend_of

_DTYPES = (torch.float32, torch.float64)


def are_plain(*tensors: Tensor) -> bool:
    """Whether the kernels here may read these tensors: on the CPU, where nothing but a backward pass follows."""
    for x in tensors:
        if not x.is_cpu or derivatives.route(x) == derivatives.DISPATCHED:
            return False
    return backend_of(tensors[0]) == "cpu"


def tags_of(z: Tensor, lengths: Tensor) -> tuple[Tensor, np.ndarray]:
    """The tags of `[B, n, C]`, `[B, n]`, -1 for padding, and which examples have exactly one, a 1, at each position."""
    z = z.detach() if z.dtype in _DTYPES else z.detach().float()
    tags, fine = torch.empty(z.shape[:2], dtype=torch.long, device="cpu"), np.ones(len(z), np.bool_)
    if z.numel() > 0:
        spread(_read, len(z), z.numel(), z.contiguous().numpy(), lengths.contiguous().numpy(), tags.numpy(), fine)
    return tags, fine


def counts_of(tags: Tensor, lengths: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """How often sequences of tags `[B, n]` have each emission, start, end and transition: `[B, n + 2 + C, C]`.

    Tags beyond the length are not read.
    """
    out = empty((len(tags), tags.shape[1] + 2 + count, count), dtype)
    if len(tags) > 0:
        spread(_write, len(tags), out.numel(), tags.contiguous().numpy(), lengths.contiguous().numpy(), out.numpy())
    return out


def counts_of_members(z: Tensor, lengths: Tensor, dtype: torch.dtype) -> Tensor | None:
    """`counts_of` the tags of `[B, n, C]`; None if some example has not exactly one, a 1, at each position."""
    z = z.detach() if z.dtype in _DTYPES else z.detach().float()
    out, fine = empty((z.shape[0], z.shape[1] + 2 + z.shape[2], z.shape[2]), dtype), np.ones(z.shape[0], np.bool_)
    if len(fine) > 0:
        spread(_count, len(fine), z.numel(), z.contiguous().numpy(), lengths.contiguous().numpy(), out.numpy(), fine)
    return out if np.count_nonzero(fine) == len(fine) else None


@subroutine
def _only_tag(z, base, count):
    """The tag of a position, -1 if not exactly one of the numbers there is a 1 and the others are 0."""
    lanes, none, tag, ones = lanes_in(z), splat(z, 0.0), -1, 0
    for k in range(0, count, lanes):
        width = min(lanes, count - k)
        bits = nonzero(load(z, base + k) if width == lanes else load_first(z, base + k, width, none))
        tag = k + lowest_bit(bits) if bits != 0 else tag
        ones += (bits != 0) + (bits & (bits - 1) != 0)
    return tag if ones == 1 and z[base + max(tag, 0)] == 1 else -1


@subroutine
def _add(out, begin, n, count, i, before, tag):
    """Count a tag, and the one before it, of a sequence."""
    out[begin + i * count + tag] = 1.0
    if i == 0:
        out[begin + n * count + tag] = 1.0
    else:
        out[begin + (n + 2 + before) * count + tag] += 1.0


@kernel
def _read(worker, workers, z, lengths, tags, fine):
    flat, n, count = z.reshape(-1), z.shape[1], z.shape[2]
    for b in range(worker, len(z), workers):
        for i in range(n):
            tags[b, i] = _only_tag(flat, (b * n + i) * count, count) if i < lengths[b] else -1
            fine[b] &= i >= lengths[b] or tags[b, i] >= 0


@kernel
def _count(worker, workers, z, lengths, out, fine):
    flat, flat_z, n, rows, count = out.reshape(-1), z.reshape(-1), z.shape[1], out.shape[1], out.shape[2]
    for b in range(worker, len(z), workers):
        length, begin, tag = min(max(lengths[b], 0), n), b * rows * count, 0
        clear(flat, begin, begin + rows * count)
        for i in range(length):
            before, tag = tag, _only_tag(flat_z, (b * n + i) * count, count)
            fine[b] &= tag >= 0
            if not fine[b]:
                break
            _add(flat, begin, n, count, i, before, tag)
        if length > 0 and fine[b]:
            flat[begin + (n + 1) * count + tag] = 1.0


@kernel
def _write(worker, workers, tags, lengths, out):
    flat, n, rows, count = out.reshape(-1), tags.shape[1], out.shape[1], out.shape[2]
    for b in range(worker, len(tags), workers):
        length, begin = min(max(lengths[b], 0), n), b * rows * count
        clear(flat, begin, begin + rows * count)
        for i in range(length):
            _add(flat, begin, n, count, i, tags[b, max(i - 1, 0)], tags[b, i])
        if length > 0:
            flat[begin + (n + 1) * count + tags[b, length - 1]] = 1.0
