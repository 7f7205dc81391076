"""A pool of our own threads: for forked children, and for a PyTorch without OpenMP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

_pool: ThreadPoolExecutor | None = None
_size = 0
_lock = threading.Lock()


def run(kernel: Callable[..., Any], workers: int, *args: Any) -> None:
    """Call `kernel(worker, workers, *args)` for every worker, the first on this thread, and wait for all."""
    others = [_submit(kernel, worker, workers, *args) for worker in range(1, workers)]
    try:
        kernel(0, workers, *args)
    finally:
        for other in others:
            other.result()


def _submit(kernel: Callable[..., Any], *args: Any) -> Future[Any]:
    global _pool, _size
    with _lock:
        wanted = torch.get_num_threads()
        if _pool is None or _size < wanted:
            _pool, _size = ThreadPoolExecutor(wanted, thread_name_prefix="pullback"), wanted
        return _pool.submit(kernel, *args)


def forget() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that no thread will release."""
    global _pool, _size, _lock
    _pool, _size, _lock = None, 0, threading.Lock()
