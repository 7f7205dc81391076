"""Memory for large results on the CPU: what earlier results have left is used again.

PyTorch returns the memory of a large tensor to the system, which clears each page that is touched again: for 5 MB that takes
longer than inference. A result made here lies in an array that is kept, and may be used again once nothing refers to it.

All memory and tables that outlive a call, each for a reason of its own:

| pool | key | bound | lifetime | reason |
|---|---|---|---|---|
| `memory._kept` | shape and dtype | 64 MiB | process | fresh memory of large results is cleared page by page |
| `threads._own` | none: the last | 16 MiB a thread | thread | the same for scratch, whose content means nothing |
| `records._own` | `Arrangement` | 64 MiB a thread | thread | the same for states of searches, which begin as zeros |
| `Family.plans` | operation, options, backend | as many | family | bind once what does not depend on numbers |
| `layout._whole` | batch, at most 1024, and size | 256 | process | sizes without padding: a tenth of a small call |
| `compiled._states`, `Oracle.fixed` | oracle, shape, options | 64 each | process | arrangements and addresses of a search |
| `hypergraph/tables.py` | recursion, shape, device | 256 MiB each | recursion | tables take longer to make than inference |
| `hypergraph/cuda._launches` | table and mode | as many | table | arguments of a kernel that do not change |

Scratch and states are two pools: what a search leaves in its states is read again, and scratch is written over.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

LARGE, MOST = 2**18, 2**26  # bytes of a result from which on it is worth it, and of all arrays that are kept
_kept: list[np.ndarray] = []  # as they were last asked for, at a cache line of the bytes that are their base
_DTYPES: dict[torch.dtype, np.dtype[Any]] = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}


def empty_like(x: Tensor) -> Tensor:
    """A contiguous tensor of the shape and dtype of one on the CPU, uninitialised."""
    return torch.empty_like(x, memory_format=torch.contiguous_format) if x.nbytes < LARGE else empty(x.shape, x.dtype)


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A tensor on the CPU, uninitialised."""
    known = _DTYPES.get(dtype)
    if known is None or (size := math.prod(shape) * known.itemsize) < LARGE:
        return torch.empty(shape, dtype=dtype, device="cpu")
    if size > MOST:
        return torch.from_numpy(np.empty(shape, known))  # NumPy asks for large pages
    array = _unused(tuple(shape), known)
    if array is None:
        array = _shaped(np.empty(size + 64, np.uint8), tuple(shape), known)
        with contextlib.suppress(IndexError):  # another thread has taken the last one
            while _kept and size + sum(map(_room, list(_kept))) > MOST:
                _kept.pop(0)
    result = torch.from_numpy(array)
    _kept.append(array)  # now that something refers to it
    return result


def _unused(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray | None:
    """An array with room for this one, to which nothing refers, the last one used, taken from the list."""
    try:
        for i in range(len(_kept) - 1, -1, -1):
            array = _kept.pop(i)  # which no other thread sees now
            if sys.getrefcount(array) == _ALONE:
                if array.shape == shape and array.dtype == dtype:
                    return array
                size = math.prod(shape) * dtype.itemsize
                if size <= _room(array) < 2 * size:
                    return _shaped(_bytes(array), shape, dtype)
            _kept.insert(i, array)
    except IndexError:  # another thread has taken one
        pass
    return None


def _bytes(array: np.ndarray) -> np.ndarray:
    assert array.base is not None
    return array.base


def _room(array: np.ndarray) -> int:
    return len(_bytes(array)) - 64


def _shaped(raw: np.ndarray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array that begins at the first cache line of some bytes."""
    start = -raw.ctypes.data % 64
    return raw[start : start + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def _count() -> int:
    array = np.empty(1)
    return sys.getrefcount(array)


_ALONE = _count()
