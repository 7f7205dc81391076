"""SparseMAP of CUDA tensors on the CPU's threads, for small batches: its search is one long chain of small dependent steps.
Where a step is several launches, a CPU core finishes it sooner than a GPU, which wins by solving many examples side by side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

_PER_THREAD = {"eisner": 0, "chu_liu_edmonds": 3, "chain": 4, "segmentation": 4, "alignment": 4}
"""How many examples for each thread a CPU solves as fast as a GPU solves all of them, by the algorithm of the argmax: measured
on an H200 beside 16 cores (docs/gpu.md).
"""
_OTHERWISE = 1
_largest: Callable[[str], int] | None = None


@contextlib.contextmanager
def offload(largest_batch: int | None = None) -> Iterator[None]:
    """Solve SparseMAP of CUDA tensors on the CPU's threads, where the batch is small.

    Scores are copied to pinned memory, solved by the CPU's kernels and copied back, so each such call synchronises with
    the device. Larger batches, all other operations, gradients, and calls inside the capture of a CUDA graph stay on the GPU.
    The results are those of the CPU: the same projection within its duality gap.

    Args:
        largest_batch: the largest number of examples in a call that is solved on the CPU; by default as many for each of
            PyTorch's threads (`torch.get_num_threads()`) as paid for the structure where that was measured (docs/gpu.md): none
            of projective trees.

    >>> with offload():
    ...     mu = structure.sparsemap(scores)  # doctest: +SKIP
    """
    global _largest
    before, _largest = _largest, _default if largest_batch is None else lambda algorithm: largest_batch
    try:
        yield
    finally:
        _largest = before


def _default(algorithm: str) -> int:
    return _PER_THREAD.get(algorithm, _OTHERWISE) * torch.get_num_threads()


def wanted(scores: Tensor, algorithm: str) -> bool:
    """Whether SparseMAP of these CUDA tensors goes to the CPU, for a structure whose argmax is found by this algorithm."""
    return _largest is not None and len(scores) <= _largest(algorithm) and not capturing(scores)


def capturing(x: Tensor) -> bool:
    """Whether a CUDA graph is being captured, so that nothing may wait for the device."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def on_the_cpu(call: Callable[..., tuple[Tensor, ...]], args: tuple[Any, ...], room: int | None) -> tuple[Tensor, ...]:
    """The results of `call` on copies of the arguments, on the device of these.

    Args:
        call: SparseMAP on the CPU. Of its results, the second and the third are active sets `[B, k, ...]`.
        args: on a GPU.
        room: the k of the GPU's own results, if that is fixed; what is not in use is left unwritten.
    """
    copies = [_to_host(x) if isinstance(x, Tensor) else x for x in args]
    device = args[0].device
    if args[0].is_cuda:
        torch.cuda.current_stream(device).synchronize()
    mu, vertices, weights, *rest = call(*copies)
    if room is not None and vertices.shape[1] <= room:
        vertices, weights = (_with_room(x, room, device) for x in (vertices, weights))
    return mu.to(device), vertices.to(device), weights.to(device), *(x.to(device) for x in rest)


def _with_room(x: Tensor, room: int, device: torch.device) -> Tensor:
    out = torch.empty((x.shape[0], room, *x.shape[2:]), dtype=x.dtype, device=device)
    out[:, : x.shape[1]] = x
    return out


def _to_host(x: Tensor) -> Tensor:
    host = torch.empty(x.shape, dtype=x.dtype, pin_memory=x.is_cuda)
    return host.copy_(x, non_blocking=True)
