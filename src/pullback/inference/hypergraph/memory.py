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

LARGE, MOST = 2**20, 2**25  # bytes of a result from which on it is worth it, and of all arrays that are kept
_kept: list[np.ndarray] = []


def empty_like(x: Tensor) -> Tensor:
    """An uninitialised tensor of the shape and dtype of a contiguous tensor on the CPU."""
    size = x.numel() * x.itemsize
    if not LARGE <= size <= MOST:
        return torch.empty_like(x)
    array = _unused(size)
    if array is None:
        array = np.empty(size + 64, np.uint8)
    start = -array.ctypes.data % 64
    result = torch.from_numpy(array[start : start + size]).view(x.dtype).view(x.shape)
    _kept.append(array)
    if sum(map(len, _kept)) > MOST:
        _kept.pop(0)
    return result


def _unused(size: int) -> np.ndarray | None:
    """An array with room for so many bytes at a cache line to which nothing refers, the last one used, taken from the list."""
    with contextlib.suppress(IndexError):  # another thread has taken one
        for i in range(len(_kept) - 1, -1, -1):
            array = _kept.pop(i)  # which no other thread sees now
            if size <= len(array) - 64 < 2 * size and sys.getrefcount(array) == _ALONE:
                return array
            _kept.insert(i, array)
    return None


def _count() -> int:
    array = np.empty(1)
    return sys.getrefcount(array)


_ALONE = _count()
