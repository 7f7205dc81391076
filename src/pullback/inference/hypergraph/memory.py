"""Memory for large results on the CPU: what earlier results have left is used again.

PyTorch returns the memory of a large tensor to the system, which clears each page that is touched again: for 5 MB that takes
longer than inference. A result made here lies in an array that is kept, and may be used again once nothing refers to it.
"""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import torch
from torch import Tensor

LARGE, MOST = 2**18, 2**25  # bytes of a result from which on it is worth it, and of all arrays that are kept
_kept: list[tuple[np.ndarray, int]] = []  # bytes, and where their first cache line begins


def empty_like(x: Tensor) -> Tensor:
    """A contiguous tensor of the shape and dtype of one on the CPU, uninitialised."""
    if x.nbytes < LARGE:
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    return empty(x.numel(), x.dtype).view(x.shape)


def empty(count: int, dtype: torch.dtype) -> Tensor:
    """So many numbers on the CPU, uninitialised."""
    size = count * dtype.itemsize
    if not LARGE <= size <= MOST:
        return torch.empty(count, dtype=dtype, device="cpu")
    kept = _unused(size)
    if kept is None:
        array = np.empty(size + 64, np.uint8)
        kept = array, -array.ctypes.data % 64
    result = torch.frombuffer(kept[0], dtype=dtype, count=count, offset=kept[1])
    _kept.append(kept)  # now that something refers to it
    if len(_kept) > 1 and sum(len(array) for array, _ in _kept) > MOST:
        _kept.pop(0)
    return result


def _unused(size: int) -> tuple[np.ndarray, int] | None:
    """An array with room for so many bytes at a cache line to which nothing refers, the last one used, taken from the list."""
    with contextlib.suppress(IndexError):  # another thread has taken one
        for i in range(len(_kept) - 1, -1, -1):
            kept = _kept.pop(i)  # which no other thread sees now
            if size <= len(kept[0]) - 64 < 2 * size and sys.getrefcount(kept[0]) == _ALONE:
                return kept
            _kept.insert(i, kept)
    return None


def _count() -> int:
    kept = (np.empty(1), 0)
    return sys.getrefcount(kept[0])


_ALONE = _count()
