"""SparseMAP of CUDA tensors on the CPU's threads, for small batches: its search is one long chain of small dependent steps,
each of which a CPU core finishes sooner than a GPU; a GPU wins by solving many examples side by side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

_PER_THREAD = 3  # examples: on an H200 beside 16 cores, the break-even of trees of 30 words (docs/gpu.md)
_largest: int | None = None


@contextlib.contextmanager
def offload(largest_batch: int | None = None) -> Iterator[None]:
    """Solve SparseMAP of CUDA tensors on the CPU's threads, where the batch is small.

    Scores are copied to pinned memory, solved by the CPU's kernels and copied back, so each such call synchronises with
    the device. Larger batches, all other operations, gradients, and calls inside the capture of a CUDA graph stay on the GPU.
    The results are those of the CPU: the same projection within its duality gap.

    Args:
        largest_batch: the largest number of examples in a call that is solved on the CPU; by default 3 for each of
            PyTorch's threads (`torch.get_num_threads()`).

    >>> with offload():
    ...     mu = structure.sparsemap(scores)  # doctest: +SKIP
    """
    global _largest
    before, _largest = _largest, _PER_THREAD * torch.get_num_threads() if largest_batch is None else largest_batch
    try:
        yield
    finally:
        _largest = before


def wanted(operation: str, scores: Tensor) -> bool:
    """Whether a call on CUDA tensors goes to the CPU."""
    if _largest is None or operation != "sparsemap" or len(scores) > _largest:
        return False
    return not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())


def on_the_cpu(
    call: Callable[..., tuple[Tensor, ...]], shapes: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Tensor, ...]:
    """The results of `call` on copies of the arguments, in the shapes and on the device of the GPU's own.

    Args:
        call: SparseMAP on the CPU. Of its results, the second and the third are active sets `[B, k, ...]`, and the fourth
            counts how much of them is in use; the rest is left unwritten.
        shapes: from the arguments to empty results.
        args: on a GPU.
    """
    copies = [_to_host(x) if isinstance(x, Tensor) else x for x in args]
    if args[0].is_cuda:
        torch.cuda.current_stream(args[0].device).synchronize()
    found = call(*copies)
    used = int(found[3].max()) if len(found[3]) else 0
    results = shapes(*args)
    for index, (target, source) in enumerate(zip(results, found, strict=True)):
        if index in (1, 2):
            target[:, :used].copy_(source[:, :used])
        else:
            target.copy_(source)
    return tuple(results)


def _to_host(x: Tensor) -> Tensor:
    host = torch.empty(x.shape, dtype=x.dtype, pin_memory=x.is_cuda)
    return host.copy_(x, non_blocking=True)
