"""Spreads a kernel over threads: PyTorch's, or a pool of our own where those cannot be had.

Numba's `parallel=True` is neither safe from several Python threads nor after a fork; this is both.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from pullback.inference import openmp

LITTLE = 2e5  # so many operations are done before another thread has woken up

_team = openmp.find()
_pool: ThreadPoolExecutor | None = None
_size = 0
_lock = threading.Lock()


def spread(kernel: Callable[..., Any], units: int, work: float, *args: Any) -> None:
    """Call `kernel(worker, workers, *args)` for each of several workers at once, and wait for all.

    Args:
        kernel: compiled code that releases the GIL and does the units worker, worker + workers, ...
        units: how many independent units of work there are; no more workers than that.
        work: about how many inner-loop operations there are in all, of about half a nanosecond each; little work
            stays on this thread.
        args: passed on.
    """
    workers = min(torch.get_num_threads(), units)
    if workers <= 1 or work < LITTLE:
        kernel(0, 1, *args)
    elif _team is not None:
        _team.run(kernel, units, *args)
    else:
        _run_in_pool(kernel, workers, *args)


def _run_in_pool(kernel: Callable[..., Any], workers: int, *args: Any) -> None:
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


def _forget_threads() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that nobody will release.

    OpenMP does not know that its threads are gone and would wait for them, so a child has a pool of its own.
    """
    global _team, _pool, _size, _lock
    _team, _pool, _size, _lock = None, None, 0, threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)
