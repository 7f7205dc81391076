"""Spreads a kernel over threads: PyTorch's, or a pool of our own where those cannot be had.

Numba's `parallel=True` is neither safe from several Python threads nor after a fork; this is both.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from pullback.inference import openmp

LITTLE = 1e5  # operations that are not worth a worker: so many are done before another thread has begun

_pool: ThreadPoolExecutor | None = None
_size = 0
_lock = threading.Lock()


def spread(kernel: Callable[..., Any], units: int, work: float, *args: Any) -> None:
    """Call `kernel(worker, workers, *args)` for each of several workers at once, and wait for all.

    Args:
        kernel: compiled code that releases the GIL and does the units worker, worker + workers, ...
        units: how many independent units of work there are; no more workers than that.
        work: about how many inner-loop operations there are in all, of about half a nanosecond each; little work
            takes fewer workers, or stays on this thread.
        args: passed on.
    """
    workers = int(min(torch.get_num_threads(), units, work / LITTLE))
    if workers <= 1 or sys.is_finalizing():  # when threads do not get the GIL any more
        kernel(0, 1, *args)
    elif _team is not None:
        _team.run(kernel, workers, *args)
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


def _forked() -> bool:
    """Whether `multiprocessing` forked this process, before this module was imported."""
    return multiprocessing.parent_process() is not None and "--multiprocessing-fork" not in sys.orig_argv  # of a spawn


_team = None if _forked() else openmp.find()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_threads)
